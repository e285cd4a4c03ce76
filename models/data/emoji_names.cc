#include "models/data/emoji_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/data/byte_reader.h"
#include "models/data/utf8.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint32_t kColourSelector = 0xFE0F;
constexpr absl::string_view kElement = "<annotation ", kElementEnd = "</annotation>";

absl::Status ErrorAt(absl::string_view file, absl::string_view whole, absl::string_view part,
                     absl::string_view fault) {
  return FileByteReader(whole, file, ByteOrder::kBig).Error(part.data() - whole.data(), fault);
}

// One line with a ';': characters; status # picture version name.
absl::Status ParseLine(absl::string_view line, absl::string_view text, absl::string_view file,
                       const std::string& group, std::vector<EmojiEntry>* entries) {
  const size_t semicolon = line.find(';'), hash = line.find('#', semicolon);
  if (hash == line.npos) return ErrorAt(file, text, line, "no ';' and '#' in the line");
  const absl::string_view status =
      absl::StripAsciiWhitespace(line.substr(semicolon + 1, hash - semicolon - 1));
  if (status != "fully-qualified") return absl::OkStatus();
  if (group.empty()) return ErrorAt(file, text, line, "an emoji before the first group");
  EmojiEntry entry;
  entry.group = group;
  for (const absl::string_view word :
       absl::StrSplit(line.substr(0, semicolon), ' ', absl::SkipWhitespace())) {
    uint32_t character = 0;
    if (!absl::SimpleHexAtoi(word, &character) || character > 0x10FFFF) {
      return ErrorAt(file, text, word, absl::StrCat("'", word, "' is no character"));
    }
    if (character != kColourSelector) entry.characters.push_back(character);
  }
  // Picture and version, then the name.
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(line.substr(hash + 1)), absl::MaxSplits(' ', 2));
  if (words.size() != 3 || entry.characters.empty()) {
    return ErrorAt(file, text, line, "no characters, or no name behind picture and version");
  }
  entry.name = std::string(words[2]);
  entries->push_back(std::move(entry));
  return absl::OkStatus();
}

// The value of ` name="..."`; empty when it is not there.
absl::string_view AttributeOf(absl::string_view attributes, absl::string_view name) {
  const std::string start = absl::StrCat(name, "=\"");
  for (size_t at = attributes.find(start); at != attributes.npos;
       at = attributes.find(start, at + 1)) {
    if (at > 0 && attributes[at - 1] != ' ') continue;
    const absl::string_view value = attributes.substr(at + start.size());
    return value.substr(0, value.find('"'));
  }
  return absl::string_view();
}

// &amp; and its like, and numbers of characters.
absl::StatusOr<std::string> Unescape(absl::string_view text, absl::string_view xml,
                                     absl::string_view file) {
  static constexpr std::pair<absl::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  while (!text.empty()) {
    const size_t plain = std::min(text.find('&'), text.size());
    absl::StrAppend(&out, text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t end = text.find(';');
    if (end == text.npos) return ErrorAt(file, xml, text, "'&' without ';'");
    absl::string_view entity = text.substr(1, end - 1);
    const size_t before = out.size();
    for (const auto& [name, character] : kNamed) {
      if (entity == name) out.push_back(character);
    }
    uint32_t number = 0;
    if (absl::ConsumePrefix(&entity, "#") &&
        (absl::ConsumePrefix(&entity, "x") ? absl::SimpleHexAtoi(entity, &number)
                                           : absl::SimpleAtoi(entity, &number))) {
      out += EncodeUtf8(number);
    }
    if (out.size() == before) {
      return ErrorAt(file, xml, text, absl::StrCat("entity '", text.substr(0, end + 1), "'"));
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<EmojiEntry>> ParseEmojiTest(absl::string_view text,
                                                       absl::string_view file) {
  std::vector<EmojiEntry> entries;
  std::string group;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "# group:")) {
      group = std::string(absl::StripAsciiWhitespace(rest));
    } else if (!line.empty() && line[0] != '#') {
      PIPELAB_RETURN_IF_ERROR(ParseLine(line, text, file, group, &entries));
    }
  }
  if (entries.empty()) return ErrorAt(file, text, text, "no fully-qualified emoji");
  return entries;
}

absl::StatusOr<std::map<std::string, std::string>> ParseAnnotations(absl::string_view xml,
                                                                    absl::string_view file) {
  if (!absl::StrContains(xml, "<ldml>") || !absl::StrContains(xml, "</ldml>")) {
    return ErrorAt(file, xml, xml, "no whole <ldml> element");
  }
  std::map<std::string, std::string> names;
  absl::string_view rest = xml;
  size_t comment = xml.find("<!--");  // the next one: looked for once, not for every element
  while (true) {
    const size_t start = rest.find(kElement);
    if (start == rest.npos) return names;
    const size_t passed = xml.size() - rest.size();
    if (comment < passed) comment = xml.find("<!--", passed);
    if (comment < passed + start) {
      rest = xml.substr(comment);
      const size_t over = rest.find("-->");
      if (over == rest.npos) return ErrorAt(file, xml, rest, "comment without an end");
      rest.remove_prefix(over);
      continue;
    }
    rest.remove_prefix(start);
    const size_t close = rest.find('>'), end = rest.find(kElementEnd);
    if (close == rest.npos || end == rest.npos || end < close) {
      return ErrorAt(file, xml, rest, "<annotation> without an end");
    }
    const absl::string_view attributes =
        rest.substr(kElement.size() - 1, close - kElement.size() + 1);
    if (AttributeOf(attributes, "type") == "tts") {
      PIPELAB_ASSIGN_OR_RETURN(std::string cp, Unescape(AttributeOf(attributes, "cp"), xml, file));
      PIPELAB_ASSIGN_OR_RETURN(std::string name,
                               Unescape(rest.substr(close + 1, end - close - 1), xml, file));
      if (cp.empty()) return ErrorAt(file, xml, rest, "<annotation> without cp");
      names.emplace(std::move(cp), std::move(name));
    }
    rest.remove_prefix(end + kElementEnd.size());
  }
}

}  // namespace pipelab
