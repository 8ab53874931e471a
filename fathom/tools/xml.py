"""Reading XML that a service sends: entities are not expanded, and nothing else is loaded."""

from __future__ import annotations

from typing import Any


def parse_xml(data: bytes) -> Any:
    """Return the root element (`lxml.etree`) of a document.

    Raises:
        ValueError: it is no XML, or declares entities of its own, which no service has reason to do.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError("no XML") from error
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        raise ValueError("XML with entities of its own")
    return root


def text_of(element: Any, path: str, namespaces: dict[str, str] | None = None) -> str:
    """Return the text of the first element at a path, with that of the elements inside it; nothing if there is none."""
    found = element.find(path, namespaces or {})
    return "" if found is None else "".join(found.itertext())
