"""The studies, by the folder that has them; study_list.cc has the order in which `all` runs them."""

# Each is //experiments:NAME, too.
STUDIES = {
    "bidirectional": ["bidirectional_comparison"],
    "elastic": [
        "swarm_survival",
        "unreliable_peers",
    ],
    "fill": ["bubble_filling"],
    "formulas": ["schedule_formulas"],
    "graph_plans": [
        "bapipe_comparison",
        "graphpipe_scaling",
    ],
    "graph_split": ["gnn_split"],
    "graphs": ["gnn_preparation"],
    "grids": ["gpt52b_scaling"],
    "inference": [
        "int4_inference",
        "pipelined_decoding",
    ],
    "local": ["local_learning"],
    "mining": ["corpus_mining"],
    "modern": ["modern_models"],
    "planning": ["planner_reference"],
    "scaling": [
        "amoebanet_scaling",
        "transformer_scaling",
    ],
    "streams": ["streams"],
    "synthesis": ["synthesis"],
    "token_slices": [
        "seq1f1b_comparison",
        "terapipe_comparison",
    ],
    "train": [
        "amoebanet_train",
        "candle_uno_train",
        "dlrm_train",
        "gpt_train",
        "mmt_train",
        "translation_train",
    ],
    "travel": ["travel"],
    "validation": ["cost_model_validation"],
    "vocabulary": ["vocabulary"],
}
