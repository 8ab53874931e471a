"""What was done in a run, by whom and because of what: a log that only grows, and in which no line changes unseen."""

from fathom.audit.events import Actor, AuditEvent, AuditType, Break, ChainedEvent, check, events_in
from fathom.audit.log import AUDIT_FILE, AuditLog

__all__ = ["AUDIT_FILE", "Actor", "AuditEvent", "AuditLog", "AuditType", "Break", "ChainedEvent", "check", "events_in"]
