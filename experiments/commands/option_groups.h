// Options that several commands take, for the tables of command.cc and simulated_commands.cc.
//
//   const OptionGroups groups;
//   JoinOptions({groups.schedule, {"steps"}})
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_OPTION_GROUPS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_OPTION_GROUPS_H_

#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

using Options = std::vector<absl::string_view>;

inline Options JoinOptions(std::initializer_list<Options> groups) {
  Options all;
  for (const Options& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

struct OptionGroups {
  Options files = {"csv", "json", "text"};
  Options schedule =
      JoinOptions({files,
                   {"devices", "micro_batches", "virtual_stages", "recompute", "group_size",
                    "replicas", "concatenation", "update_interval", "slices", "edges",
                    "stage_devices", "stage_micro_batches", "data_parallel", "context_parallel",
                    "context_exchange", "expert_parallel"}});
  Options on_cluster = {"model",    "model_time_unit", "kernels", "cluster",
                        "launches", "dtype",           "reserve"};
  Options times = JoinOptions({{"forward",
                                "backward_input",
                                "backward_weight",
                                "p2p_latency",
                                "atomic_pairs",
                                "recompute_time",
                                "step",
                                "reduce",
                                "bandwidth",
                                "links",
                                "overlap",
                                "device_speed",
                                "bytes",
                                "activation_bytes",
                                "weights",
                                "optimizer_tensors",
                                "workspace",
                                "micro_batch_size",
                                "layout",
                                "execution",
                                "ranks"},
                               on_cluster});
  Options plan = {"plan", "sequential"};
  Options plan_model = JoinOptions({plan, {"model", "model_time_unit", "micro_batch_size"}});
  Options plan_problem = {"piper_json",
                          "pipedream_profile",
                          "dnn_partitioning_json",
                          "model",
                          "cluster",
                          "devices",
                          "machines",
                          "memory",
                          "micro_batches",
                          "bandwidth",
                          "device_speed",
                          "micro_batch_size",
                          "sample_sizes",
                          "token_step",
                          "dtype",
                          "blocks",
                          "model_time_unit"};
  Options optimizer = {"optimizer",    "learning_rate", "momentum", "weight_decay",
                       "warmup_steps", "rate_decay",    "clip_norm"};
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_OPTION_GROUPS_H_
