// A report's page in a browser, for its tests: opened anew for each. Skipped by name where there is
// no Chromium.
//
//   TEST_F(PageTest, HasATitle) { EXPECT_EQ(Text("document.title"), "A sample"); }
#ifndef PIPELAB_EXPERIMENTS_REPORT_PAGE_FIXTURE_H_
#define PIPELAB_EXPERIMENTS_REPORT_PAGE_FIXTURE_H_

#include <string>
#include <utility>

#include "experiments/report/browser.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {

// The sample report with tables to sort (#sorting), with bars (#memory_bars) and of many columns
// (#wide), and timelines of slices and replicas behind its own.
std::string PageHtml();

class PageTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  // What a script's expression is, and as a text.
  nlohmann::json Get(const std::string& expression);
  std::string Text(const std::string& expression);
  // The middle of an element on the screen, scrolled to.
  std::pair<double, double> MiddleOf(const std::string& element);
  void Click(const std::string& element);
  // After the frame that a zoom has asked for.
  void NextFrame();

  static Browser* browser_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_PAGE_FIXTURE_H_
