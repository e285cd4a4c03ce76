// Small pieces of text that every writer here needs: escapes and numbers, the same on every
// machine.
//
//   HtmlEscape("a<b")         a&lt;b
//   CsvField("a,b")           "a,b" in quotes
//   FixedNumber(2.5, 2)       2.50
//   FullNumber(0.1)           0.1: the shortest that reads back
//   Slug("1F1B, no flush")    1f1b_no_flush
#ifndef PIPELAB_EXPERIMENTS_REPORT_MARKUP_H_
#define PIPELAB_EXPERIMENTS_REPORT_MARKUP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

// For HTML, SVG and XML, in text and in attributes with either quote.
std::string HtmlEscape(absl::string_view text);

// A field of RFC 4180: in quotes only where it has to be.
std::string CsvField(absl::string_view text);

// Text in Markdown that must not turn into HTML.
std::string MarkdownEscape(absl::string_view text);

// "2.50"; never "-0.00". "nan", "inf" and "-inf" where the value is not finite.
std::string FixedNumber(double value, int decimals);
// At most `decimals` digits after the point, no zeros at the end: for coordinates.
std::string ShortNumber(double value, int decimals);
// The shortest text that reads back as the same value.
std::string FullNumber(double value);

// Lower case, digits and single underscores; "x" when nothing is left.
std::string Slug(absl::string_view text);
bool IsSlug(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_MARKUP_H_
