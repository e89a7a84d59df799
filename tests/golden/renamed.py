"""What a redesign has renamed since the numbers were recorded. Numbers are never listed here: they may not change."""

from __future__ import annotations

COLUMNS: dict[str, str] = {
    "chunks": "pieces",
    "sample_size": "sample",
    "adaptive_share": "budget",
    "sampler_resamples": "partition_resamples",
    "random_state": "seed",
    "n_rows_predicted": "n_rows_asked",
    "rows_predicted": "rows_asked",
    "predictors": "foretold_by",
    "SubgroupSampler": "Subgroups",
    "selected": "chosen",
    "choice.max_depth": "limit",
    "pair_agreement": "pairs_alike",
    "report_depth": "shown_depth",
    "min_samples_split": "min_split",
    "fidelity_checks": "certificates",
    "fidelity": "certificate",
    "score_gap": "behind",
    "complexity": "parts",
    "Monte Carlo": "redraw",
    "noise.sampler": "partition",
    "uncalibrated_estimate": "estimate_before",
    "uncalibrated_std_error": "std_error_before",
    "candidates.score_gap": "behind",
    "candidates.complexity": "parts",
    "features.fidelity": "certificate",
    "features.marginal_fidelity": "marginal_certificate",
    "gap.start": "before",
    "gap.end": "after",
}
"""New key -> key when recorded: columns of tables and keys of dictionaries.

"table.column" renames a column of one table only (the key just above it, by its recorded name) and goes first.
"""

VALUES: dict[str, str] = {
    "training_subgroups": "subgroups",
    "passed": "passes",
    "failed": "fails",
    "Monte Carlo": "redraw",
    "test rows + Monte Carlo": "test rows + redraw",
    "test rows + Monte Carlo + donors": "test rows + redraw + donors",
    "test rows (calibrated) + Monte Carlo": "test rows (calibrated) + redraw",
    "test rows + Monte Carlo + sampler": "test rows + redraw + partition",
    "test rows + Monte Carlo + sampler + model": "test rows + redraw + partition + model",
}
"""New text -> text when recorded: values that are names, such as that of a sampler or of a source of noise."""

TEXTS_CHANGED: set[str] = {
    "*.sentences.*",
    "*.sentence",
    "*_sentences.*",
    "*.certificates.reason.*",
    "fidelity_*.table.note.*",
    "dependence_*.table.note.*",
    "report_*.title",
    "report_*.loss_unit",
    "report_*.model.description",
    "report_*.highlights.*",
    "report_*.headline",
    "report_*.story.*",
    "report_*.cautions.*",
    "report_*.warnings.*",
    "report_*.methods.rows_asked.*.name",
    "report_*.methods.settings.*.name",
}
"""Patterns of paths (recorded keys joined by dots, `*` for anything) at which text is prose and is not compared."""

SUMMED_OTHERWISE: set[str] = {"effect_of_all_kinds_of_columns.ale_*", "effect_in_containers.pyarrow.*"}
"""Patterns of paths whose sums have another order than when recorded, so that the last digits differ.

Accumulated effects of levels have one formula for rows in memory and for chunks, from the moments of each level.
"""

SINGLE_PRECISION = ("*.certificates.size.*", "*.certificates.size")
"""Numbers that are computed in float32."""
