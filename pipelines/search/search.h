// The fastest grid and schedule for a model, a cluster and a batch, over everything that is valid
// and fits into memory.
//
//   SearchRequest search;
//   search.devices = 64;  search.batch = 32;
//   search.methods = {MethodOf("1f1b"), MethodOf("zbv")};
//   PIPELAB_ASSIGN_OR_RETURN(SearchResult r, Search(model, search));
//   r.best[0].config.ToString();     // fastest first
//
// All divisions of the devices into pipeline x tensor x context x data, of experts over copies,
// sizes of micro-batches, what the schemes let vary, shardings, and what is computed again are
// looked at, as a tree (search_space.h). Each grid gets a lower bound of its step, the compute of
// one device if all have as much. The node with the least bound is opened: a schedule adds the idle
// time that any order of the scheme's actions leaves at the pipeline's ends (step_bounds.h), a
// whole configuration gets the bound of its placement in the given memory (placement_bound.h), then
// that of its own order (order_bound.h), or is refused if it needs too much memory, and then it is
// simulated, until the bounds pass the best that was found. So the result is that of simulating
// all, and every time in it is a simulated one.
#ifndef PIPELAB_PIPELINES_SEARCH_SEARCH_H_
#define PIPELAB_PIPELINES_SEARCH_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_fields.h"

namespace pipelab {

// A way to train: what may vary within it.
struct SearchMethod {
  std::string name;  // "depth-first, as Megatron-LM runs it"
  std::vector<std::string> schemes;
  // Stages of a pipeline device: empty, those of the catalogue's variants (schedules/variants.h),
  // with what else a scheme lets vary; or these, where there are layers.
  std::vector<int> virtual_stages;
  int least_virtual_stages = 1;  // of schemes that take any number, in searches of every size
  std::vector<Sharding> shardings = {Sharding::kReplicated};
  Residency residency = Residency::kRun;
  bool overlap_pipeline = true, overlap_data = true, whole_messages = false;
  std::vector<bool> overlap_tensor = {false};  // StepConfig::overlap_tensor, with `sequence`
  std::vector<bool> steady_overlap = {false};  // StepConfig::steady_overlap
  // StepConfig::split_head and published_order of the schemes that have them. Heads are also split
  // where gradients are sharded, since they must be.
  bool split_head = false, published_order = false;
  std::string layout;      // StepConfig::layout, of all grids; empty: the cut
  StateNumbers state;      // StepConfig::state
  uint32_t execution = 0;  // StepConfig::execution
  bool pipeline = true;    // false: no pipeline, one stage
  // VariantLimits::full_groups; of `virtual_stages`, groups of P (Narayanan et al. 2021, section
  // 2.2).
  bool full_groups = false;
};

// A configuration and its figures.
struct RankedStep {
  std::string method;
  StepConfig config;
  Nanoseconds step_time;
  Bytes largest_device;
  double tflops_per_device = 0, samples_per_second = 0;
  // With SearchRequest::by_layout, the others in V and b that are as fast as the last result.
  struct Way {
    StepConfig config;
    Nanoseconds step_time;
  };
  std::vector<Way> ways;
};

// The fastest first; of equal ones the order stays.
void SortByTime(std::vector<RankedStep>* steps);

// For SearchRequest::rebuilt_blocks.
inline std::vector<int> SomeRebuiltBlocks() { return {0, 1, 2, 4, 8, 16, 32}; }

// Keys of StepConfig that have one value each; none: what the request says.
struct FixedKeys {
  std::vector<const StepField*> fields;
  StepConfig values;

  bool has(absl::string_view key) const;
};
// "P=8,sharding=optimizer,sequence"; errors are ParseStepConfig's.
absl::StatusOr<FixedKeys> ParseFixedKeys(absl::string_view option, absl::string_view text);

// The share of a device's memory that libraries, their buffers and fragmentation take, where nobody
// says another.
inline constexpr double kMemoryReserve = 0.06;

struct SearchRequest {
  int64_t devices = 1, batch = 1;
  int max_tensor = 8;  // devices of a tensor-parallel group, at most: those of a node
  std::vector<SearchMethod> methods;
  std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kFull};
  // With recompute=blocks: how many blocks of each stage, where it has more; 0: all.
  std::vector<int> rebuilt_blocks = {0};  // or SomeRebuiltBlocks()
  int max_context = 1;                    // C, at most
  std::vector<ContextExchange> context_exchanges = {ContextExchange::kGather};  // with C above 1
  int max_expert = 1;                                                           // E, at most
  std::vector<bool> whole_experts = {false};                // where E and T are above 1
  std::vector<Dispatch> dispatch = {Dispatch::kRows};       // where E is above 1
  std::vector<Exchanges> exchanges = {Exchanges::kWaited};  // where E is above 1
  std::vector<bool> sequence = {false};  // sequence parallelism, where T is above 1
  // Every divisor for T, C, E and b, every V up to the blocks that a stage can have, every number
  // of ranks that shards, and of recompute=blocks every number of blocks; else powers of two, V of
  // schedules/variants.h, `shards`, and rebuilt_blocks.
  bool every_size = false;
  // Ranks among which the state that a sharding divides is divided, where they can be; 0: all.
  std::vector<int> shards = {0};  // or, with `every_size`, every number
  FixedKeys fixed;
  // What a step may use of a device's memory; 0: all that it has.
  Bytes memory;
  // Only configurations that it takes; none: all.
  std::function<bool(const StepConfig&)> accept;
  // Asked of each configuration whose order is about to be played: InvalidArgument leaves it out;
  // none: all are well. For what takes longer than `accept`.
  std::function<absl::Status(const StepConfig&)> check;
  int top = 1;            // of each method
  bool together = false;  // `top` of all methods, which takes less time, not of each
  // One result, the fastest, for all configurations that differ in V, b, shards, exchanges and
  // steady_overlap alone. Those that differ in V and b alone are its `ways`.
  bool by_layout = false;
  // So many of the fastest are looked at again with blocks moved between their stages
  // (moved_blocks.h); what is faster is a result of its own.
  int moved_rows = 0;
  bool simulate_all = false;  // without bounds, the same result: for tests
  // Asked between configurations: true ends the search with the best so far.
  std::function<bool()> stop;
  // Told what is faster than all before.
  std::function<void(const RankedStep&)> found;
};

// Why configurations were left out. A grid or a schedule that is left out counts as one.
struct SearchRefusals {
  int64_t considered = 0;  // all that were looked at
  int64_t ordered = 0;     // whose order was played for a tighter bound (order_bound.h)
  int64_t simulated = 0;
  int64_t memory = 0;         // do not fit
  Bytes least_memory;         // of the one that comes nearest; 0: none did not fit
  std::string nearest;        // that one
  int64_t tensor = 0;         // T divides no heads, or is beyond a node
  int64_t batch = 0;          // the batch is not a multiple of the data-parallel degree
  int64_t accept = 0;         // not what SearchRequest::accept takes; not looked at
  int64_t scheme = 0;         // refused by the scheme: too few micro-batches, layers, ...
  std::string scheme_reason;  // of the last
};

struct SearchResult {
  std::vector<RankedStep> best;  // of all methods, fastest first: `top` of each, or of all
  SearchRefusals refusals;
  bool stopped = false;  // by SearchRequest::stop
};

// NotFound saying which limit binds and the nearest that would do, where nothing fits;
// InvalidArgument naming the option for requests without meaning; Cancelled where it was stopped
// before it found anything.
absl::StatusOr<SearchResult> Search(const StepModel& model, const SearchRequest& search);
// The same; several searches of one model share the cache.
absl::StatusOr<SearchResult> Search(StepCache* cache, const SearchRequest& search);

// Devices of the largest unit that is connected without network cards which its parts share, and at
// half of the innermost level's bandwidth at least: the most that a tensor-parallel group should
// have.
int64_t NodeDevices(const ClusterSpec& cluster);

// The ways that Breadth-First Pipeline Parallelism compares (Lamy-Poirier 2023), and one for each
// newer synchronous schedule of the catalogue.
std::vector<SearchMethod> PublishedMethods();
std::vector<SearchMethod> NewerMethods();
// One for each schedule with passes for parts of a vocabulary, where the model's can be divided,
// with one barrier and with two: StepConfig::vocabulary_barriers, for T = C = 1.
std::vector<SearchMethod> VocabularyMethods(const ModelGraph& model);
// One scheme, or a schedule file, with all that its catalogue entry lets vary.
SearchMethod MethodOf(const std::string& scheme);
// One stage, whose weights may be gathered in parts: "no pipeline".
SearchMethod NoPipelineMethod();
// Every scheme whose steps the search's bounds are true of and that trains as serial training does
// on a chain of stages, and no pipeline: one method each.
std::vector<SearchMethod> AllMethods(const ModelGraph& model);
// All methods with all that a configuration may have and that changes neither the numbers which are
// trained nor the question: the result has no slower best than that of any narrower request.
SearchRequest WholeSpace(const StepModel& model, int64_t devices, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_SEARCH_H_
