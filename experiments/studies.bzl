"""The studies: a line each, in the order in which //experiments:all runs them."""

# Name, and the program. Each is also //experiments:NAME.
STUDIES = {
    "quickstart": "//experiments:quickstart",
    "schedule_formulas": "//experiments/formulas:schedule_formulas",
    "amoebanet_scaling": "//experiments/scaling:amoebanet_scaling",
    "transformer_scaling": "//experiments/scaling:transformer_scaling",
    "cost_model_validation": "//experiments/validation:cost_model_validation",
    "gpt52b_scaling": "//experiments/grids:gpt52b_scaling",
    "graphpipe_scaling": "//experiments/graph_plans:graphpipe_scaling",
    "bapipe_comparison": "//experiments/graph_plans:bapipe_comparison",
    "bidirectional_comparison": "//experiments/bidirectional:bidirectional_comparison",
    "terapipe_comparison": "//experiments/token_slices:terapipe_comparison",
    "seq1f1b_comparison": "//experiments/token_slices:seq1f1b_comparison",
    "vocabulary": "//experiments/vocabulary:vocabulary",
    "travel": "//experiments/travel:travel",
    "bubble_filling": "//experiments/fill:bubble_filling",
    "local_learning": "//experiments/local:local_learning",
    "streams": "//experiments/streams:streams",
    "planner_reference": "//experiments/planning:planner_reference",
    "modern_models": "//experiments/modern:modern_models",
    "int4_inference": "//experiments/inference:int4_inference",
    "pipelined_decoding": "//experiments/inference:pipelined_decoding",
    "unreliable_peers": "//experiments/elastic:unreliable_peers",
    "gnn_preparation": "//experiments/graphs:gnn_preparation",
    "gnn_split": "//experiments/graph_split:gnn_split",
    "synthesis": "//experiments/synthesis:synthesis",
    "corpus_mining": "//experiments/mining:corpus_mining",
    "candle_uno_train": "//experiments/train:candle_uno_train",
    "dlrm_train": "//experiments/train:dlrm_train",
    "gpt_train": "//experiments/train:gpt_train",
    "translation_train": "//experiments/train:translation_train",
    "amoebanet_train": "//experiments/train:amoebanet_train",
    "mmt_train": "//experiments/train:mmt_train",
}

# Those whose --quick is so quick that a test runs it: //experiments/results:reference_test.
RERUN_BY_TEST = [
    "schedule_formulas",
    "amoebanet_scaling",
    "cost_model_validation",
    "bapipe_comparison",
    "bidirectional_comparison",
    "terapipe_comparison",
]

def study_aliases(name):
    """Makes //experiments:NAME of every study that lies in a folder of its own.

    Args:
      name: of the package, as macros have one.
    """
    for study, target in STUDIES.items():
        if target != "//%s:%s" % (name, study):
            native.alias(
                name = study,
                actual = target,
                visibility = ["//visibility:public"],
            )
