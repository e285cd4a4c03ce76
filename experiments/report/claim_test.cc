#include "experiments/report/claim.h"

#include <string>
#include <vector>

#include "experiments/report/claim_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

Claim Gain(double ours) {
  Claim c = PaperClaim("paper.gain", "faster than the other", "Paper, Table 1", "read");
  c.unit = "x";
  Published(&c, 1.6);
  Found(&c, Origin::kSimulated, ours);
  MetWithin(&c, 1.4, 1.8, "the model has no such thing");
  return c;
}

TEST(ClaimTest, MetInsideMissedOutside) {
  for (const double ours : {1.4, 1.6, 1.8}) {
    EXPECT_EQ(Gain(ours).state, ClaimState::kMet) << ours;
    EXPECT_EQ(Gain(ours).reason, "") << ours;
  }
  for (const double ours : {1.39, 1.81, -1.6}) {
    EXPECT_EQ(Gain(ours).state, ClaimState::kMissed) << ours;
    EXPECT_EQ(Gain(ours).reason, "the model has no such thing");
  }
  const Claim c = Gain(1.44);
  EXPECT_EQ(c.published, "1.6x");
  EXPECT_EQ(c.accepted, "1.4x to 1.8x");
  EXPECT_EQ(c.ours, "1.44x");
  EXPECT_NEAR(*c.Error(), -0.1, 1e-12);
  EXPECT_EQ(c.ErrorText(), "-10.0 %");
}

TEST(ClaimTest, ErrorOfARangeIsTheWayToIt) {
  Claim c = Gain(1.1);
  Published(&c, 1.05, 1.28);
  EXPECT_EQ(c.Error(), 0);
  EXPECT_EQ(c.ErrorText(), "in range");
  Found(&c, Origin::kSimulated, 2.56);
  EXPECT_NEAR(*c.Error(), 1, 1e-12);
  Found(&c, Origin::kSimulated, 0.525);
  EXPECT_NEAR(*c.Error(), -0.5, 1e-12);
  Published(&c, 0, 0);
  EXPECT_FALSE(c.Error().has_value());  // no share of nothing
}

TEST(ClaimTest, ErrorsOfATable) {
  const CellErrors e = ErrorsOf({{"a", 1, 1.1}, {"b", 2, 1}, {"c", 4, 4}, {"d", 4, 5}});
  EXPECT_EQ(e.cells, 4);
  EXPECT_NEAR(e.median, (0.1 + 0.25) / 2, 1e-12);
  EXPECT_NEAR(e.largest, 0.5, 1e-12);
  EXPECT_EQ(e.worst, "b");
  EXPECT_EQ(e.pairs, 5);  // c and d are equal in the paper
  EXPECT_EQ(e.alike, 4);  // a is not below b here
  EXPECT_EQ(ErrorsOf({}).cells, 0);

  Claim c = PaperClaim("paper.table", "a table", "Paper", "read");
  MetWithinErrors(&c, e, 0.5, "why");
  EXPECT_EQ(c.state, ClaimState::kMet);
  MetWithinErrors(&c, e, 0.49, "why");
  EXPECT_EQ(c.state, ClaimState::kMissed);
  EXPECT_EQ(c.ErrorText(), "median 17.5 %, largest 50.0 % (b); 4 of 5 orders alike");
  MetWithinErrors(&c, ErrorsOf({}), 0.5, "nothing was compared");
  EXPECT_EQ(c.state, ClaimState::kMissed);
}

TEST(ClaimTest, DependsOnWhatThePaperDoesNotGive) {
  const auto over = [](const std::vector<RangeValue>& values) {
    Claim c = Gain(1.5);
    MetOverRange(&c, "samples per device", values, "1.4x or more", "never");
    EXPECT_THAT(CheckClaim(c), IsOk());
    return c;
  };
  EXPECT_EQ(Verdict(over({{"2", true}, {"4", true}})), "met");
  EXPECT_EQ(Verdict(over({{"2", false}, {"4", false}})), "missed: never");
  EXPECT_EQ(Verdict(over({})), "missed: never");
  const Claim c = over({{"2", true}, {"4", true}, {"16", false}, {"32", true}});
  EXPECT_EQ(c.state, ClaimState::kDependsOn);
  EXPECT_EQ(Verdict(c),
            "depends on samples per device: holds for 2, 4, 32; turns at 16, 32; never");
}

TEST(ClaimTest, ReadsBackFromJson) {
  Claim table = PaperClaim("paper.table", "a \"table\", in words", "Paper", "read-2nd");
  MetWithinErrors(&table, ErrorsOf({{"a", 1, 1.1}, {"b", 2, 2}}), 0.01, "because");
  Claim own = OwnClaim("own.rule", "all are equal");
  MetIf(&own, true, "all", "not");
  own.ours = "all";
  Claim not_made = OwnClaim("own.other", "cannot tell");
  NotMade(&not_made, "synthetic data");
  Claim depends = Gain(1.7);
  MetOverRange(&depends, "batch", {{"2", true}, {"4", false}}, "1.4x", "never");
  const std::vector<Claim> claims = {Gain(1.7), Gain(2), table, own, not_made, depends};
  const std::string text = ClaimsJson("study", claims);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<Claim> again, ParseClaims(text, "claims.json"));
  EXPECT_EQ(ClaimsJson("study", again), text);
  EXPECT_EQ(again[2].cells->worst, "a");
  EXPECT_EQ(again[4].state, ClaimState::kNotMade);
  EXPECT_EQ(again[5].state, ClaimState::kDependsOn);
  EXPECT_EQ(Verdict(again[5]), Verdict(depends));
}

TEST(ClaimTest, JsonNamesTheMistake) {
  const auto message = [](const std::string& claim) {
    const auto claims = ParseClaims(R"({"experiment": "x", "claims": [)" + claim + "]}", "f.json");
    return claims.ok() ? "" : std::string(claims.status().message());
  };
  const std::string good = R"("id": "a.b", "text": "t", "ours": "1", "accepted": "1")";
  EXPECT_EQ(message("{" + good + R"(, "origin": "computed", "state": "met"})"), "");
  EXPECT_THAT(message("{" + good + R"(, "origin": "guessed", "state": "met"})"),
              HasSubstr("f.json: claims[0].origin: \"guessed\""));
  EXPECT_THAT(message("{" + good + R"(, "origin": "computed", "state": "won"})"),
              HasSubstr("must be met, missed, depends on or not made"));
  EXPECT_THAT(message("{" + good + R"(, "origin": "computed", "state": "missed"})"),
              HasSubstr("needs a reason"));
  EXPECT_THAT(message("{" + good + R"(, "origin": "computed", "state": "met", "x": 1})"),
              HasSubstr("x"));
}

TEST(ClaimTest, RefusesHalfAClaim) {
  Claim c = Gain(1.5);
  EXPECT_THAT(CheckClaim(c), IsOk());
  c.tag = "";
  EXPECT_FALSE(CheckClaim(c).ok());
  c = Gain(1.5);
  c.tag = "recalled";
  EXPECT_FALSE(CheckClaim(c).ok());
  c = Gain(1.5);
  c.id = "Paper gain";
  EXPECT_FALSE(CheckClaim(c).ok());
  c = Gain(5);
  c.reason = "";
  EXPECT_FALSE(CheckClaim(c).ok());
  EXPECT_FALSE(CheckClaim(OwnClaim("a", "never decided")).ok());
}

TEST(ClaimTest, TableHasMissedFirst) {
  Claim missed = Gain(3);
  missed.id = "paper.other";
  const Table t = ClaimsTable({Gain(1.5), missed});
  ASSERT_THAT(t.status(), IsOk());
  EXPECT_EQ(t.RowKey(0), "claim=paper.other");
  EXPECT_EQ(t.RowKey(1), "claim=paper.gain");
  const std::string text = t.ToMarkdown();
  EXPECT_THAT(text, HasSubstr("1.6x (read)"));
  EXPECT_THAT(text, HasSubstr("3x (simulated)"));
  EXPECT_THAT(text, HasSubstr("the model has no such thing"));
}

TEST(Claim, CountsCellsWithinPoints) {
  Claim c = PaperClaim("paper.mfu", "MFU", "a paper", "read");
  c.unit = "points";
  MetWithinPoints(&c, Origin::kSimulated, {{"a", 1}, {"b", -3}, {"", 2.5}}, 3, "why", "run");
  EXPECT_EQ(c.published, "3 runs");
  EXPECT_EQ(c.ours, "3 of 3 within 3; off by -3.0 at most: b");
  EXPECT_EQ(c.accepted, "each run within 3 points");
  EXPECT_EQ(c.state, ClaimState::kMet);
  EXPECT_EQ(c.value, -3);
  MetWithinPoints(&c, Origin::kSimulated, {{"a", 1}, {"", 3.04}}, 3, "why");
  EXPECT_EQ(c.ours, "1 of 2 within 3; off by +3.0 at most");
  EXPECT_EQ(Verdict(c), "missed: why");
  MetWithinPoints(&c, Origin::kSimulated, {}, 3, "why");
  EXPECT_EQ(Verdict(c), "not made: no cell of this kind");
}

}  // namespace
}  // namespace pipelab
