// How report.html looks in a browser: contrast in light and dark, pictures, paper; and the tree
// that screen readers get.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "experiments/report/page_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/png.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::Contains;

// Every text against what is behind it, as the browser computes both.
constexpr char kLeastContrast[] = R"js((() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const luminance = (c) => rgb(c).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((rgb(c)[3] ?? 1) > 0) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  let least = [99, ''], texts = 0;
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest('svg, script, style, .hidden')) continue;
    ++texts;
    const c = contrast(getComputedStyle(e).color, behind(e));
    if (c < least[0]) least = [c, e.outerHTML.slice(0, 120)];
  }
  return [least[0], least[1], texts];
})())js";

TEST_F(PageTest, IsReadableInLightAndDark) {
  std::set<std::string> pages;
  for (const char* scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
    const nlohmann::json least = Get(kLeastContrast);
    EXPECT_GE(least[0].get<double>(), 4.5) << scheme << ": " << least[1];
    EXPECT_GT(least[2].get<int>(), 100);
    const std::string page = Text("getComputedStyle(document.body).backgroundColor");
    EXPECT_EQ(page, scheme == std::string("light") ? "rgb(255, 255, 255)" : "rgb(22, 24, 28)");
    // Drawings go with the page.
    EXPECT_EQ(Text("getComputedStyle(document.querySelector('.pl-bg')).fill"), page);
  }
}

// Pictures of both, for people to look at, and that they are what they should be.
TEST_F(PageTest, LooksAsItShould) {
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const auto keep = [&](const std::string& name, const std::string& bytes) {
    if (outputs != nullptr) std::ofstream(absl::StrCat(outputs, "/", name)) << bytes;
  };
  for (const char* scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string png, browser_->Png());
    keep(absl::StrCat(scheme, ".png"), png);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PngImage picture, DecodePng(png, scheme, 1 << 26));
    EXPECT_EQ(picture.width, 1200);
    EXPECT_GT(picture.height, 1500);
    double light = 0;  // 0: all black, 1: all white
    for (const uint8_t v : picture.rgba) light += v;
    light = light / static_cast<double>(picture.width * picture.height) / 255 - 1;  // less alpha
    light /= 3;
    if (scheme == std::string("light")) {
      EXPECT_GT(light, 0.8);
    } else {
      EXPECT_LT(light, 0.4);
    }
  }
  ASSERT_THAT(browser_->Emulate("", "light"), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string pdf, browser_->Pdf());
  keep("paper.pdf", pdf);
  EXPECT_THAT(pdf, testing::StartsWith("%PDF-"));
}

// On paper: nothing wider than the page, nothing to click, details open.
TEST_F(PageTest, FitsOnPaper) {
  ASSERT_THAT(browser_->Emulate("print", "dark"), IsOk());
  Get("dispatchEvent(new Event('beforeprint'))");
  for (const auto& [width, chosen] :
       std::map<int, std::string>{{703, "body *"},                    // A4 less margins of 12 mm
                                  {1031, ".wide, .wide *, body *"}})  // the same, lying
  {
    ASSERT_THAT(
        browser_->Call(
            "Emulation.setDeviceMetricsOverride",
            {{"width", width}, {"height", 1000}, {"deviceScaleFactor", 1}, {"mobile", false}}),
        IsOk());
    EXPECT_EQ(Text(absl::StrCat(
                  "[...document.querySelectorAll('", chosen, "')].filter((e) => ", width,
                  " > 1000 || !e.closest('.wide')).filter((e) => !e.closest('svg, .skip, .hidden'))"
                  ".filter((e) => e.getBoundingClientRect().right > ",
                  width, " + 0.5).map((e) => e.outerHTML.slice(0, 100)).join()")),
              "");
  }
  EXPECT_EQ(Text("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
  EXPECT_EQ(Get("[...document.querySelectorAll('.tools, nav, .skip')].every((e) => "
                "getComputedStyle(e).display === 'none')"),
            true);
  EXPECT_EQ(Get("[...document.querySelectorAll('details')].every((d) => d.open)"), true);
  EXPECT_EQ(Text("getComputedStyle(document.querySelector('#wide').parentElement).page"), "wide");
  ASSERT_THAT(browser_->Call(
                  "Emulation.setDeviceMetricsOverride",
                  {{"width", 1200}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}}),
              IsOk());
}

// The tree that screen readers are given.
TEST_F(PageTest, ReadersGetNamesAndLandmarks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json tree,
                               browser_->Call("Accessibility.getFullAXTree", {}));
  std::map<std::string, int> roles;
  std::set<std::string> names;
  for (const nlohmann::json& node : tree["nodes"]) {
    if (node.value("ignored", false)) continue;
    const std::string role = node["role"]["value"];
    const std::string name =
        node.contains("name") && node["name"].contains("value") ? node["name"]["value"] : "";
    ++roles[role];
    names.insert(absl::StrCat(role, ": ", name));
    static const std::set<std::string> kNamed = {"button",      "table",        "img",
                                                 "image",       "region",       "link",
                                                 "application", "columnheader", "navigation"};
    if (kNamed.count(role) > 0) {
      EXPECT_NE(name, "") << node.dump();
    }
  }
  for (const char* role : {"banner", "navigation", "main", "table", "columnheader", "rowheader"}) {
    EXPECT_GT(roles[role], 0) << role;
  }
  EXPECT_THAT(names, Contains("table: A table to sort"));
  EXPECT_THAT(names, Contains("navigation: Sections"));
  EXPECT_THAT(names, Contains(testing::StartsWith("application: gpipe: 4 devices, 8 micro-b")));
  EXPECT_THAT(names, Contains(testing::StartsWith("group: Timeline of gpipe: 4 devices")));
  EXPECT_THAT(names, Contains("heading: Results"));
}

}  // namespace
}  // namespace pipelab
