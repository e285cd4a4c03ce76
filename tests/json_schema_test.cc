// What commands write as JSON is what docs/step.schema.json says.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::HasSubstr;

bool HasType(const json& value, const json& type) {
  if (type.is_array()) {
    return std::any_of(type.begin(), type.end(), [&](const json& t) { return HasType(value, t); });
  }
  if (type == "integer") return value.is_number_integer();
  return type == "number" ? value.is_number() : type == value.type_name();
}

// The part of JSON Schema that the file uses. Returns what is wrong, or nothing.
class Checker {
 public:
  explicit Checker(json root) : root_(std::move(root)) {}

  std::string Check(const json& value, const std::string& def) const {
    return Check(value, root_["$defs"][def], "");
  }

 private:
  std::string Check(const json& value, const json& schema, const std::string& place) const {
    if (schema.is_boolean()) return schema.get<bool>() ? "" : place + ": not in the schema";
    std::string wrong;
    for (const auto& [key, rule] : schema.items()) {
      if (!wrong.empty()) return wrong;
      if (key == "$ref") {
        wrong =
            Check(value, root_.at(json::json_pointer(rule.get<std::string>().substr(1))), place);
      } else if (key == "allOf") {
        for (const json& part : rule) absl::StrAppend(&wrong, Check(value, part, place));
      } else if (key == "type") {
        if (!HasType(value, rule)) wrong = absl::StrCat(place, ": is not ", rule.dump());
      } else if (key == "const") {
        if (value != rule) wrong = absl::StrCat(place, ": is not ", rule.dump());
      } else if (key == "minimum") {
        if (value < rule) wrong = absl::StrCat(place, ": is below ", rule.dump());
      } else if (key == "maximum") {
        if (value > rule) wrong = absl::StrCat(place, ": is above ", rule.dump());
      } else if (key == "required") {
        for (const json& name : rule) {
          if (!value.contains(name.get<std::string>()))
            absl::StrAppend(&wrong, place, "/", name.dump(), ": missing");
        }
      } else if (key == "items") {
        for (const json& item : value) absl::StrAppend(&wrong, Check(item, rule, place + "[]"));
      } else if (key == "properties" || key == "additionalProperties") {
        wrong = CheckFields(value, schema, key == "properties", place);
      } else if (key != "description") {
        wrong = absl::StrCat(key, ": a rule that this test does not know");
      }
    }
    return wrong;
  }

  // Those that `properties` names, or the others.
  std::string CheckFields(const json& value, const json& schema, bool named,
                          const std::string& place) const {
    const json properties = schema.value("properties", json::object());
    std::string wrong;
    for (const auto& [name, field] : value.items()) {
      if (properties.contains(name) != named) continue;
      const json& rule = named ? properties[name] : schema["additionalProperties"];
      absl::StrAppend(&wrong, Check(field, rule, absl::StrCat(place, "/", name)));
    }
    return wrong;
  }

  const json root_;
};

Checker Schema() {
  return Checker(ParseJson(ReadTextFile("docs/step.schema.json").value(), "schema").value());
}

std::string Printed(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.insert(arguments.begin(), "experiments/pipelab");
  const ProcessResult result = RunProcess(arguments).value();
  EXPECT_EQ(result.exit_code, exit_code) << result.error;
  return result.output;
}

json OutputOf(std::vector<std::string> arguments) {
  arguments.push_back("--json_out=-");
  return ParseJson(Printed(arguments), arguments[0]).value();
}

const char kConfig[] = "zbv:P=8,T=2,D=2,M=16";
const char kModel[] = "--model=gpt-6.6b";
const char kCluster[] = "--cluster=dgx-a100";

TEST(JsonSchema, SimulateFollowsItWithTimesByHand) {
  EXPECT_EQ(Schema().Check(OutputOf({"simulate", "1f1b"}), "figures"), "");
  EXPECT_EQ(Schema().Check(OutputOf({"simulate", "1f1b", "--weights=1GiB"}), "figures"), "");
  EXPECT_EQ(
      Schema().Check(OutputOf({"simulate", "over_time_inference", "--arrivals=2.5"}), "figures"),
      "");
}

TEST(JsonSchema, SimulateFollowsItWithAModel) {
  EXPECT_EQ(Schema().Check(OutputOf({"simulate", kConfig, kModel, kCluster}), "simulated"), "");
}

TEST(JsonSchema, ExplainFollowsIt) {
  const std::string explain = absl::StrCat("--explain=", kConfig);
  EXPECT_EQ(Schema().Check(OutputOf({"search", explain, kModel, kCluster}), "explained"), "");
}

TEST(JsonSchema, CompareFollowsIt) {
  const json all = OutputOf({"compare", kConfig, "1f1b:P=8,M=16", kModel, kCluster});
  EXPECT_EQ(all.size(), 2);
  EXPECT_EQ(Schema().Check(all, "compared"), "");
}

TEST(JsonSchema, SearchFollowsIt) {
  const json found = OutputOf(
      {"search", kModel, kCluster, "--devices=8", "--batch=8", "--top=2", "--schemes=1f1b"});
  EXPECT_EQ(found["best"].size(), 2);
  EXPECT_EQ(Schema().Check(found, "found"), "");
}

TEST(JsonSchema, LogitsFollowIt) {
  const std::string folder = JoinPath(testing::TempDir(), "llama");
  const std::string make = absl::StrCat("source tests/tiny_llama.sh; tiny_llama ", folder);
  ASSERT_EQ(RunProcess({"/bin/bash", "-c", make}).value().exit_code, 0);
  const json logits =
      OutputOf({"logits", absl::StrCat("--model=", folder, "/config.json"), "--tokens=1,2"});
  EXPECT_EQ(Schema().Check(logits, "logits"), "");
  EXPECT_EQ(logits["logits"].size(), 8192);
}

TEST(JsonSchema, EvaluateFollowsIt) {
  const json evaluated = OutputOf(
      {"evaluate", kCluster, "--devices=8", "--top=2",
       // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
       "--flags=--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
       "--max-position-embeddings 512 --vocab-size 1000 --micro-batch-size 1 --bf16 --lr 1 "
       "--sft --new-thing 3 "
       "--global-batch-size 32 --pipeline-model-parallel-size 4 --grad-reduce-in-bf16"});
  EXPECT_EQ(Schema().Check(evaluated, "evaluated"), "");
  EXPECT_EQ(evaluated["neighbours"].size(), 2);
  EXPECT_GT(evaluated["neighbours"][0]["gain"], 0);
  EXPECT_EQ(evaluated["assumptions"].size(), 3);
  EXPECT_EQ(evaluated["passed_over"], json({"--lr"}));
  EXPECT_EQ(evaluated["not_priced"],
            json({"--sft: samples are as long as --seq-length, each of one text"}));
  EXPECT_EQ(evaluated["unknown"], json({"--new-thing 3: unknown"}));
}

// What evaluate prints has one price: configurations, their neighbours', and what schedule writes.
TEST(Evaluate, IsWhatSimulateSaysOfItsConfigurations) {
  const std::string config =
      "1f1b:P=4,T=2,D=2,b=1,M=16,sharding=optimizer,state=2+2,sequence,"
      "no_pipeline_overlap,layout=17+16+16+17";
  const std::vector<std::string> on = {"--model=llama-3-8b@4096", "--cluster=dgx-h100",
                                       "--dtype=bf16", "--kernels=megatron"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), on.begin(), on.end());
    return words;
  };
  const std::string flags = Printed(with({"schedule", config, "--format=megatron"}));
  EXPECT_THAT(flags, HasSubstr("--num-query-groups 8\n"));
  const json evaluated = OutputOf({"evaluate", absl::StrCat("--flags=", flags), "--devices=16",
                                   "--cluster=dgx-h100", "--top=3"});
  const json simulated = OutputOf(with({"simulate", config}));
  EXPECT_EQ(evaluated["step_ms"], simulated["step_ms"]);
  EXPECT_EQ(evaluated["memory_bytes"], simulated["memory_bytes"]);
  ASSERT_EQ(evaluated["neighbours"].size(), 3);
  for (const json& n : evaluated["neighbours"]) {
    const json again = OutputOf(with({"simulate", n["config"].get<std::string>()}));
    EXPECT_EQ(again["step_ms"], n["step_ms"]) << n["config"];
    EXPECT_EQ(again["memory_bytes"], n["memory_bytes"]) << n["config"];
  }
}

// A row of a search whose experts are divided, written as flags.
TEST(Evaluate, PricesDividedExpertsAsSimulateDoes) {
  const std::vector<std::string> on = {"--model=mixtral-8x7b", "--cluster=dgx-h100", "--dtype=bf16",
                                       "--kernels=megatron"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), on.begin(), on.end());
    return words;
  };
  const json found = OutputOf(with(
      {"search", "--devices=16", "--batch=64", "--max_expert=8", "--fixed=E=8", "--schemes=1f1b"}));
  const std::string row = found["best"][0]["config"];
  EXPECT_THAT(row, HasSubstr("E=8"));
  // Megatron-LM's 1F1B waits for messages, and its weights have 2 bytes.
  const std::string config = absl::StrCat(row, ",no_pipeline_overlap,state=2+2");
  const std::string flags = Printed(with({"schedule", config, "--format=megatron"}));
  EXPECT_THAT(flags, HasSubstr("--expert-model-parallel-size 8\n"));
  const json evaluated = OutputOf({"evaluate", absl::StrCat("--flags=", flags), "--devices=16",
                                   "--cluster=dgx-h100", "--top=0"});
  const json simulated = OutputOf(with({"simulate", config}));
  EXPECT_EQ(evaluated["step_ms"], simulated["step_ms"]) << flags;
  EXPECT_EQ(evaluated["memory_bytes"], simulated["memory_bytes"]) << flags;
}

TEST(JsonSchema, RunFollowsIt) {
  const json trained = OutputOf({"run", "1f1b", "--devices=2", "--micro_batches=2", "--steps=1"});
  EXPECT_EQ(Schema().Check(trained, "trained"), "");
}

TEST(JsonSchema, ListFollowsIt) {
  for (const char* what : {"schemes", "models", "clusters"}) {
    const json listed = ParseJson(Printed({"list", what, "--json"}), what).value();
    EXPECT_GE(listed[what].size(), 10) << what;
    EXPECT_EQ(Schema().Check(listed, "listed"), "");
  }
}

TEST(JsonSchema, MachineFollowsIt) {
  const json all = ParseJson(Printed({"machine", "--json"}), "machines").value();
  EXPECT_EQ(Schema().Check(all, "machine"), "");
  EXPECT_GE(all["machines"].size(), 10);
  const json one = ParseJson(Printed({"machine", "dgx-b200", "--json"}), "machine").value();
  EXPECT_EQ(Schema().Check(one, "machine"), "");
  EXPECT_GE(one["values"].size(), 30);
  EXPECT_EQ(one["curves"][0]["lines"].size(), 2);
}

TEST(JsonSchema, CheckFollowsIt) {
  const std::string file = JoinPath(testing::TempDir(), "schedule.json");
  const auto verdict = [&](const std::string& text, int exit_code) {
    EXPECT_THAT(WriteFileAtomically(file, text), IsOk());
    return ParseJson(Printed({"check", absl::StrCat("--json=", file)}, exit_code), "check").value();
  };
  json schedule =
      ParseJson(Printed({"schedule", "1f1b", "--devices=2", "--format=json"}), "schedule").value();
  EXPECT_EQ(Schema().Check(verdict(schedule.dump(), 0), "verdict"), "");
  schedule["order"][0].erase(0);
  const json invalid = verdict(schedule.dump(), 1);
  EXPECT_TRUE(invalid.contains("reason"));
  EXPECT_EQ(Schema().Check(invalid, "verdict"), "");
}

TEST(JsonSchema, CheckPlanFollowsIt) {
  const std::vector<std::string> problem = {"--model=mmt-small", "--cluster=summit-4gpu",
                                            "--devices=4", "--micro_batch_size=2"};
  const std::string file = JoinPath(testing::TempDir(), "plan.json");
  std::vector<std::string> plan = {"plan", "--planner=uniform", absl::StrCat("--json_out=", file)};
  plan.insert(plan.end(), problem.begin(), problem.end());
  Printed(plan);
  std::vector<std::string> check = {"check_plan", absl::StrCat("--plan=", file)};
  check.insert(check.end(), problem.begin(), problem.end());
  EXPECT_EQ(Schema().Check(OutputOf(check), "judged"), "");
}

TEST(JsonSchema, FieldsThatLackOrDifferAreFound) {
  const json good = OutputOf({"simulate", kConfig, kModel, kCluster});
  json bad = good;
  bad.erase("step_ms");
  EXPECT_THAT(Schema().Check(bad, "simulated"), HasSubstr("step_ms\": missing"));
  bad = good;
  bad["devices"][7].erase("bubble");
  EXPECT_THAT(Schema().Check(bad, "simulated"), HasSubstr("/devices[]/\"bubble\": missing"));
  bad = good;
  bad["devices"][0]["memory_bytes"] = "12 GiB";
  EXPECT_THAT(Schema().Check(bad, "simulated"), HasSubstr("memory_bytes: is not \"integer\""));
  bad = good;
  bad["extra"] = 1;
  EXPECT_THAT(Schema().Check(bad, "simulated"), HasSubstr("/extra: not in the schema"));
  bad = good;
  bad["schema"] = 2;
  EXPECT_THAT(Schema().Check(bad, "simulated"), HasSubstr("/schema: is not 1"));
  EXPECT_THAT(Schema().Check(good, "explained"), HasSubstr("\"parts\": missing"));
}

}  // namespace
}  // namespace pipelab
