// What commands write with --json_out is what docs/step.schema.json says.
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

bool HasType(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  return type == "number" ? value.is_number() : value.type_name() == type;
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

json OutputOf(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "experiments/pipelab");
  arguments.push_back("--json_out=-");
  const ProcessResult result = RunProcess(arguments).value();
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return ParseJson(result.output, arguments[1]).value();
}

const char kConfig[] = "zbv:P=8,T=2,D=2,M=16";
const char kModel[] = "--model=gpt-6.6b";
const char kCluster[] = "--cluster=dgx-a100";

TEST(JsonSchema, SimulateFollowsItWithTimesByHand) {
  EXPECT_EQ(Schema().Check(OutputOf({"simulate", "1f1b"}), "figures"), "");
  EXPECT_EQ(Schema().Check(OutputOf({"simulate", "1f1b", "--weights=1GiB"}), "figures"), "");
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
