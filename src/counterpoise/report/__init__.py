"""The report: one page that opens without a network, `decision.json`, tables, figures, documents. No torch."""

from counterpoise.report.claims import Claim, Verdict, read_claims, write_claims
from counterpoise.report.decision import SCHEMA, decision_json
from counterpoise.report.gallery import Gallery
from counterpoise.report.writing import write

__all__ = ["SCHEMA", "Claim", "Gallery", "Verdict", "decision_json", "read_claims", "write", "write_claims"]
