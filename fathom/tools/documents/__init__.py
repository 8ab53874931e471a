"""The local documents: reading, indexing and searching them."""

from fathom.tools.documents.corpus import check_documents
from fathom.tools.documents.tool import DocumentsTool

__all__ = ["DocumentsTool", "check_documents"]
