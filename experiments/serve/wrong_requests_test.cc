// Each kind of wrong use of the page's API is answered with one line and the right status.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "experiments/serve/serve_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/json.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

struct WrongUse {
  int status;
  const char* command;
  std::string body;
  const char* says;
};

// 45 kinds.
std::vector<WrongUse> WrongUses() {
  const std::string long_word(600, 'a'), long_value(5000, '1');
  std::string objects = "{}";
  for (int i = 0; i < 20000; ++i) objects += ",{}";
  return {
      {400, "simulate", "{\"words\": [" + objects + "]}", "not JSON: more than 16384 values"},
      {404, "draw", "{}", "/api/draw: no such command; there are simulate, show"},
      {404, "simulat", "{}", "did you mean simulate?"},
      {404, "run", "{}", "/api/run: no such command"},
      {400, "simulate", "", "request:1:1: not JSON"},
      {400, "simulate", "{\"words\": [", "not JSON"},
      {400, "simulate", "{\"words\": [\"\xff\xfe\"]}", "not JSON"},
      {400, "simulate", std::string(3000, '['), "not JSON"},
      {400, "simulate", "[]", "request"},
      {400, "simulate", "7", "request"},
      {400, "simulate", R"({"wrods": []})", "wrods"},
      {400, "simulate", R"({"words": "1f1b"})", "words"},
      {400, "simulate", R"({"words": [1]})", "words: must be texts"},
      {400, "simulate", R"({"words": ["--devices=4"]})", "options go into options"},
      {400, "simulate", R"({"words": [""]})", "options go into options"},
      {400, "simulate", R"({"words": [")" + long_word + "\"]}", "600 characters; at most 512"},
      {400, "simulate", R"({"words": ["a\u0000b"]})", "control characters"},
      {400, "compare", R"({"words": ["1","2","3","4","5","6","7","8","9","1","2","3","4","5","6",
       "7","8"]})",
       "17 of them; at most 16"},
      {400, "simulate", "{}", "simulate: needs a scheme's name"},
      {400, "simulate", R"({"words": ["1f2b"]})", "did you mean 1f1b?"},
      {400, "simulate", R"({"words": ["1f1b:P=0"]})", "P=0"},
      {400, "simulate", R"({"words": ["1f1b:P=4,M=8"], "options": {"devices": 4}})",
       "--devices: the configuration 1f1b:P=4,M=8 says its sizes"},
      {400, "simulate", R"({"words": ["1f1b"], "options": []})", "options"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"device": 4}})",
       "--device: no option of simulate; did you mean --devices?"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"devices=4 --seed": 4}})",
       "no option of simulate"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"devices": "four"}})",
       "--devices=four: must be a whole number"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"devices": 1.5}})",
       "--devices=1.5: must be a whole number"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"devices": null}})",
       "--devices: must be a number, a text"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"forward": [[1]]}})",
       "--forward: a list must have numbers or texts"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"devices": 2000}})",
       "devices=2000: at most 1024 here"},
      {400, "simulate", R"({"words": ["1f1b:P=1024,M=1024"]})", "at most 262144 here"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"forward": ")" + long_value + "\"}}",
       "--forward: 5000 characters; at most 4096"},
      {400, "simulate", R"({"options": {"csv": "/etc/passwd"}})", "names a file of the server"},
      {400, "simulate", R"({"options": {"csv": "../../x.csv"}})", "names a file of the server"},
      {400, "simulate", R"({"options": {"csv": "-"}})", "names a file of the server"},
      {400, "simulate", R"({"words": ["/etc/passwd.csv"]})", "names a file of the server"},
      {400, "simulate", R"({"words": ["1f1b"], "options": {"json_out": "x"}})",
       "--json_out: the answer has what the command writes"},
      {400, "list", R"({"words": ["models"], "options": {"json": "x"}})",
       "--json: the answer has what the command writes"},
      {422, "simulate", R"({"options": {"csv": "passwd"}})",
       "--csv=passwd: passwd: cannot be read"},
      {400, "simulate", R"({"words": ["a.csv"], "files": {"../a.csv": "x"}})", "no name of a file"},
      {400, "simulate", R"({"words": ["a.csv"], "files": {".csv": "x"}})", "no name of a file"},
      {400, "simulate", R"({"words": ["a.csv"], "files": {"a.csv": 1}})", "files.a.csv"},
      {422, "simulate", R"({"words": ["a.csv"], "files": {"a.csv": "0F0,0X0"}})", "a.csv"},
      {400, "simulate", R"({"words": ["1f1b"], "drawings": ["picture"]})", "'picture'"},
      {400, "simulate", R"({"words": ["1f1b"], "drawings": ["timeline", "timeline"]})",
       "each once"},
      {400, "search", R"({"options": {"batch": 64}})", "--model"},
      {400, "search", R"({"options": {"model": "gpt-6.6b", "cluster": "dgx-a100",
        "devices": 8, "batch": 999999999}})",
       "--batch=999999999: at most"},
      {400, "search", R"({"options": {"model": "gpt-66b", "cluster": "dgx-a100", "batch": 8}})",
       "gpt-6.6b"},
      {400, "synthesize", R"({"words": ["1f1b:P=4,M=8"], "options": {"time_limit": "10m"}})",
       "--time_limit=10m: at most 1m here"},
      {422, "synthesize", R"({"words": ["1f1b:P=4,M=8"], "options": {"memory": "1MiB",
        "weights": "2MiB"}})",
       "--memory=1MiB"},
      {413, "stop", R"({"id": ")" + long_value + "\"}", "a body of 5010 bytes; at most 1024"},
      {400, "stop", "{}", "request: id"},
      {400, "stop", R"({"id": "a b"})", "letters and digits"},
      {404, "stop", R"({"id": "nobody"})", "nothing runs by this id"},
  };
}

TEST_F(ServeTest, WrongUseIsOneLineAndTheRightStatus) {
  for (const WrongUse& wrong : WrongUses()) {
    const HttpAnswer answer = Post(wrong.command, wrong.body);
    const std::string name = absl::StrCat(wrong.command, " ", wrong.body.substr(0, 120));
    EXPECT_EQ(answer.status, wrong.status) << name << ": " << answer.body;
    const auto json = ParseJson(answer.body, "answer");
    ASSERT_TRUE(json.ok() && json->contains("error")) << name << ": " << answer.body;
    const std::string line = (*json)["error"];
    EXPECT_THAT(line, HasSubstr(wrong.says)) << name;
    EXPECT_FALSE(absl::StrContains(line, '\n')) << name;
    EXPECT_FALSE(absl::StrContains(line, "/tmp")) << name;  // where files lie is nobody's business
  }
  EXPECT_GE(WrongUses().size(), 35);
}

}  // namespace
}  // namespace pipelab
