"""Text without a model: what extraction, retrieval, narrowing and verification share.

Everything here is a pure function of its arguments: no network, no clock, no randomness, the same on every machine.
"""

from fathom.text.asking import Question, read_question
from fathom.text.duplicates import DuplicateFilter, is_near_duplicate
from fathom.text.narrowing import OMISSION, Narrowed, narrow
from fathom.text.ranking import Passage, Query, rank_passages, term_weights
from fathom.text.selection import Pick, Reader
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.support import support
from fathom.text.terms import count_words, query_terms, terms
from fathom.text.tokens import count_tokens

__all__ = [
    "OMISSION",
    "DuplicateFilter",
    "Narrowed",
    "Passage",
    "Pick",
    "Query",
    "Question",
    "Reader",
    "Sentence",
    "count_tokens",
    "count_words",
    "is_near_duplicate",
    "narrow",
    "query_terms",
    "rank_passages",
    "read_question",
    "split_sentences",
    "support",
    "term_weights",
    "terms",
]
