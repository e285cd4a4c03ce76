#include "tools/base/json_object.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::ElementsAre;

json Parsed(const char* text) { return *ParseJson(text, "a.json"); }

template <typename T>
std::string Message(const absl::StatusOr<T>& result) {
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(JsonObject, ReadsFields) {
  const json root = Parsed(R"({"name": "a", "n": 3, "share": 0.5, "on": true,
                               "device": {"memory": "16 GiB"}, "levels": [{"n": 1}, {"n": 2}]})");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const JsonObject file, JsonObject::Root(root, "a.json"));
  EXPECT_THAT(file.AllowKeys({"name", "n", "share", "on", "device", "levels"}), IsOk());
  EXPECT_THAT(file.Keys(), ElementsAre("device", "levels", "n", "name", "on", "share"));
  EXPECT_EQ(*file.String("name"), "a");
  EXPECT_EQ(*file.Integer("n", 1, 3), 3);
  EXPECT_EQ(*file.Number("n"), 3);
  EXPECT_EQ(*file.Number("share"), 0.5);
  EXPECT_TRUE(*file.Bool("on"));
  EXPECT_TRUE(file.Has("device"));
  EXPECT_FALSE(file.Has("memory"));
  EXPECT_TRUE(file.HasString("name") && !file.HasString("n") && !file.HasString("memory"));
  EXPECT_TRUE(file.HasObject("device") && !file.HasObject("n") && !file.HasObject("memory"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const JsonObject device, file.Object("device"));
  EXPECT_EQ(*device.Quantity<Bytes>("memory"), Bytes(int64_t{16} << 30));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto levels, file.Objects("levels"));
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(*levels[1].Integer("n", 0, 9), 2);
}

TEST(JsonObject, ErrorsNameFilePlaceAndReason) {
  const json root = Parsed(R"({"name": "", "n": 3, "big": 1e30, "huge": 18446744073709551615,
                               "half": 1.5, "device": {"memory": "16", "speed": 5},
                               "levels": [{}, {"depth": 1}, 3], "text": "x"})");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const JsonObject file, JsonObject::Root(root, "a.json"));
  EXPECT_EQ(Message(JsonObject::Root(root["n"], "a.json")), "a.json: 3: must be an object");
  EXPECT_EQ(std::string(file.AllowKeys({"name", "n"}).message()),
            "a.json: big: unknown; known here: name, n");
  EXPECT_EQ(Message(file.String("none")), "a.json: none: missing");
  EXPECT_EQ(Message(file.String("name")), "a.json: name: must not be empty");
  EXPECT_EQ(Message(file.String("n")), "a.json: n: 3: must be a string");
  EXPECT_EQ(Message(file.Number("text")), "a.json: text: \"x\": must be a number");
  EXPECT_EQ(Message(file.Integer("n", 4, 9)), "a.json: n: 3: must be a whole number from 4 to 9");
  EXPECT_EQ(Message(file.Integer("half", 0, 9)),
            "a.json: half: 1.5: must be a whole number from 0 to 9");
  EXPECT_EQ(Message(file.Integer("huge", 0, 9)),
            "a.json: huge: 18446744073709551615: must be a whole number from 0 to 9");
  EXPECT_FALSE(file.Integer("big", 0, 9).ok());
  EXPECT_EQ(Message(file.Bool("n")), "a.json: n: 3: must be true or false");
  EXPECT_EQ(Message(file.Object("levels")).substr(0, 16), "a.json: levels: ");
  EXPECT_EQ(Message(file.List("device")).substr(0, 16), "a.json: device: ");
  EXPECT_EQ(Message(file.Objects("levels")), "a.json: levels[2]: 3: must be an object");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const JsonObject device, file.Object("device"));
  EXPECT_EQ(std::string(device.AllowKeys({"memory"}).message()),
            "a.json: device.speed: unknown; known here: memory");
  EXPECT_EQ(Message(device.Quantity<Bytes>("memory")),
            "a.json: device.memory: \"16\": the unit is missing; must be a number and a unit, such "
            "as \"16 GiB\"");
}

}  // namespace
}  // namespace pipelab
