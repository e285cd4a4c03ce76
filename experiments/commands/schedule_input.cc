#include "experiments/commands/schedule_input.h"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/stage_flags.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/flags.h"
#include "experiments/simulate/user_file.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/step/recompute_gaps.h"
#include "pipelines/step/schedule_file.h"
#include "pipelines/step/vocabulary_parts.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int64_t, micro_batch_size);  // step_input.cc
ABSL_FLAG(int, devices, 4, "pipeline devices of a scheme");
ABSL_FLAG(int, micro_batches, 8, "micro-batches of a scheme, over all replicas");
ABSL_FLAG(int, virtual_stages, 0, "stages that a device holds of one replica; 0: the scheme's own");
ABSL_FLAG(
    int, group_size, 0,
    "micro-batches per group. Interleaved schemes: at least --devices (0: --devices, or a "
    "few more if some would be left over). graph: forwards before as many backwards (0: 1). "
    "tawpipe: devices of a node (0: the most that leave two nodes). local_replay: outputs in a "
    "buffer between two stages (0: 4)");
ABSL_FLAG(int, replicas, 0, "copies of the model, half of them each way (chimera); 0: two");
ABSL_FLAG(std::string, concatenation, "direct",
          "how chimera runs more micro-batches than devices: direct, forward_doubling, or "
          "backward_halving (the schedule then has twice the micro-batches, of half the size)");
ABSL_FLAG(
    int, update_interval, 0,
    "micro-batches of an update: at least devices (pipedream_2bw; 0: devices); steps without a "
    "flush (local, local_replay; 0: one step behind all)");
ABSL_FLAG(int, slices, 0, "token slices of a micro-batch (terapipe, seq1f1b); 0: the scheme's own");
ABSL_FLAG(int, data_parallel, 1,
          "data-parallel copies of each device, which divide its micro-batches by rows");
ABSL_FLAG(int, context_parallel, 1,
          "devices that divide each sample's tokens, in each copy of each device");
ABSL_FLAG(
    std::string, context_exchange, "gather",
    "how attention gets at the keys and values of these devices: gather; ring, from one to the "
    "next beside the attention to those at hand; or heads, of which each gets all tokens of some");
ABSL_FLAG(int, expert_parallel, 1,
          "devices among copies and parts of tokens that divide the experts of each layer; needs "
          "--model");
ABSL_FLAG(bool, recompute, false, "each backward of a scheme first rebuilds its activations");
ABSL_FLAG(std::string, csv, "", "a schedule in PyTorch's CSV form; -: stdin");
ABSL_FLAG(std::string, json, "", "a schedule in pipelab's JSON form; -: stdin");
ABSL_FLAG(std::string, text, "", "a schedule in pipelab's text form; -: stdin");

namespace pipelab {
namespace {

absl::Status CheckWords(const std::vector<std::string>& words, bool takes_scheme, bool file) {
  const std::string& command = words[0];
  const size_t most = file || !takes_scheme ? 1 : 2;
  if (words.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[most], "': ", command,
                     !takes_scheme ? " takes --csv=FILE, --json=FILE or --text=FILE, and no name"
                     : file        ? " takes a scheme's name or a file, not both"
                                   : " takes one scheme's name; options begin with --"));
  }
  if (file || words.size() == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(command, ": ",
                   takes_scheme ? "needs a scheme's name (pipelab list shows them), or --csv=FILE, "
                                  "--json=FILE or --text=FILE"
                                : "needs --csv=FILE, --json=FILE or --text=FILE"));
}

// The schedule has all copies itself.
absl::Status SetOwn(ScheduleInput* input) {
  for (const auto& [flag, key, value] :
       {std::make_tuple("context_parallel", "C", absl::GetFlag(FLAGS_context_parallel)),
        std::make_tuple("expert_parallel", "E", absl::GetFlag(FLAGS_expert_parallel))}) {
    if (value == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag, "=", value, ": ", input->source,
        " says its devices; give it with a scheme's name, or as FILE:", key, "=", value));
  }
  input->own = true;
  input->config.pipeline = input->schedule.num_devices();
  input->config.micro_batches = input->schedule.num_micro_batches;
  input->config.micro_batch_size *= input->config.data;
  input->config.data = 1;
  return absl::OkStatus();
}

// A scheme's name, a configuration or a file's name.
absl::StatusOr<ScheduleInput> FromWord(const std::string& word) {
  ScheduleInput input;
  input.source = word;
  PIPELAB_ASSIGN_OR_RETURN(input.config, ConfigFromWord(word));
  if (input.config.has_schedule_file()) {
    PIPELAB_ASSIGN_OR_RETURN(Schedule one, ReadScheduleFile(&input.config));
    input.schedule = WithCopies(std::move(one), input.config.copies());
    input.kind = InputKind::kText;
    return input;
  }
  PIPELAB_RETURN_IF_ERROR(FindScheme(input.config.scheme, "scheme").status());
  PIPELAB_RETURN_IF_ERROR(CheckVocabularyParts(input.config));
  SchemeParams params = SchemeSizes(input.config, input.config.copies());
  const bool divided = input.config.divides_vocabulary();
  if (divided && FlagWasSet("edges")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--edges: vocabulary_barriers=", input.config.vocabulary_barriers,
                     " says which stage feeds which; leave out one of the two"));
  }
  PIPELAB_RETURN_IF_ERROR(ReadStageFlags(&params));
  PIPELAB_ASSIGN_OR_RETURN(input.schedule, MakeSchedule(input.config.scheme, params));
  // Where no model says more: of equal passes. BuildStep has the times of its own.
  PassLengths equal = PassLengths::Unit(input.schedule.num_stages());
  equal.recompute = equal.forward;
  PIPELAB_ASSIGN_OR_RETURN(input.schedule,
                           RecomputeEarly(input.config, std::move(input.schedule), equal));
  if ((params.stages.num_stages() > 0 && !divided) || !params.devices_of_stage.empty() ||
      !params.micro_batches_of_stage.empty()) {
    PIPELAB_RETURN_IF_ERROR(SetOwn(&input));
  }
  return input;
}

// A file that the command line can name.
struct FileOption {
  absl::string_view option;  // "--csv"
  InputKind kind;
  std::string path;  // empty: not given
};

absl::StatusOr<ScheduleInput> FromFile(const FileOption& file) {
  ScheduleInput input;
  input.kind = file.kind;
  input.source = absl::StrCat(file.option, "=", file.path);
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile(file.option, file.path));
  absl::StatusOr<Schedule> schedule =
      ParseScheduleFile(file.option, text, input.source, &input.skipped);
  if (!schedule.ok()) {
    const absl::string_view reason = schedule.status().message();
    // The JSON reader names the file itself.
    return absl::FailedPreconditionError(file.kind == InputKind::kJson
                                             ? std::string(reason)
                                             : absl::StrCat(input.source, ": ", reason));
  }
  input.schedule = *std::move(schedule);
  return input;
}

}  // namespace

absl::StatusOr<ScheduleInput> ReadScheduleInput(const std::vector<std::string>& words,
                                                bool takes_scheme) {
  std::vector<FileOption> files = {{"--csv", InputKind::kCsv, absl::GetFlag(FLAGS_csv)},
                                   {"--json", InputKind::kJson, absl::GetFlag(FLAGS_json)},
                                   {"--text", InputKind::kText, absl::GetFlag(FLAGS_text)}};
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const FileOption& f) { return f.path.empty(); }),
              files.end());
  PIPELAB_RETURN_IF_ERROR(CheckWords(words, takes_scheme, !files.empty()));
  if (files.empty()) return FromWord(words[1]);
  if (files.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(files[0].option, "=", files[0].path, " and ",
                                                   files[1].option, "=", files[1].path,
                                                   ": give one of them"));
  }
  if (absl::GetFlag(FLAGS_recompute)) {
    return absl::InvalidArgumentError(
        "--recompute=true: only for schemes; a file itself says what is recomputed");
  }
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, FromFile(files[0]));
  input.config.scheme = input.source;
  input.config.micro_batch_size = absl::GetFlag(FLAGS_micro_batch_size);
  input.config.data = absl::GetFlag(FLAGS_data_parallel);
  if (input.config.data < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data_parallel=", input.config.data, ": must be at least 1"));
  }
  // `check` is told what is wrong in the file as it is.
  if (input.config.data > 1) {
    PIPELAB_RETURN_IF_ERROR(CheckInput(input));
    input.schedule = WithCopies(std::move(input.schedule), input.config.data);
  }
  PIPELAB_RETURN_IF_ERROR(SetOwn(&input));
  return input;
}

std::string SkippedNote(const ScheduleInput& input) {
  if (input.skipped.total() == 0) return "";
  return absl::StrCat(input.skipped.total(), " cells of messages (", input.skipped.messages,
                      "), parameter gathers (", input.skipped.gathers,
                      ") and gradient reductions (", input.skipped.reductions,
                      ") left out: pipelab adds its own");
}

void PrintSkippedNote(const ScheduleInput& input) {
  const std::string note = SkippedNote(input);
  if (!note.empty()) std::fprintf(stderr, "%s: %s\n", input.source.c_str(), note.c_str());
}

absl::Status CheckInput(const ScheduleInput& input) {
  const absl::Status valid = Validate(input.schedule);
  if (valid.ok()) return valid;
  return absl::FailedPreconditionError(absl::StrCat(input.source, ": ", valid.message()));
}

absl::StatusOr<std::string> InFormat(const Schedule& schedule, absl::string_view format) {
  if (format == "text") return ToText(schedule);
  if (format == "json") return ToJson(schedule);
  if (format == "csv") return ToCsv(schedule);
  return absl::InvalidArgumentError(absl::StrCat(
      "--format=", format, ": must be csv, text, json, megatron, torchtitan or deepspeed"));
}

}  // namespace pipelab
