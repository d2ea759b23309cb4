"""Remote skills: the entries of an index, the prompt text about them, and what the catalog makes of them.

Nothing here reads anything: an index comes in as bytes. Everything in it is third-party text.
"""

from capdex_engine.skills.entries import Fault, Skill, SkillIndex, SkillIndexError, read_index
from capdex_engine.skills.render import render_skill_instruction

__all__ = [
    "Fault",
    "Skill",
    "SkillIndex",
    "SkillIndexError",
    "read_index",
    "render_skill_instruction",
]
