// R's format from hand-made bytes: each kind of item, each kind of damage.
#include "models/data/r_serialization.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/r_test_writer.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

RValue Read(const RWriter& w) {
  auto value = ReadRSerialized(w.bytes(), "test");
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *value : RValue();
}

TEST(RSerialization, DataFrame) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RValue frame, ReadRSerialized(SampleFrame(), "test"));
  EXPECT_EQ(frame.type, RType::kList);
  EXPECT_THAT(ElementNames(frame), ElementsAre("genre", "rating", "title", "id"));
  ASSERT_NE(frame.Attribute("class"), nullptr);  // its tag was a reference
  EXPECT_THAT(frame.Attribute("class")->strings, ElementsAre("data.frame"));
  EXPECT_EQ(frame.Element("none"), nullptr);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto genres, FactorStrings(*frame.Element("genre")));
  EXPECT_THAT(genres, ElementsAre("drama", "noir", "drama", ""));
  EXPECT_THAT(frame.Element("rating")->doubles, ElementsAre(0.5, -1.0, 1e300, 3.0));
  const RValue& title = *frame.Element("title");
  EXPECT_THAT(title.strings, ElementsAre("a", "", "\xC3\xA9", "\xC3\xA9"));
  EXPECT_THAT(title.missing_strings, ElementsAre(1));
  EXPECT_THAT(frame.Element("id")->integers, ElementsAre(1, 2, 3, 4));
}

TEST(RSerialization, VersionsAndScalars) {
  EXPECT_EQ(Read(RWriter().Begin(2).Null()).type, RType::kNull);
  EXPECT_THAT(Read(RWriter().Begin(2).Integers({-5})).integers, ElementsAre(-5));
  EXPECT_EQ(Read(RWriter().Begin(3).Item(kLogicalCode).Word(1).Word(1)).type, RType::kLogical);
  EXPECT_EQ(Read(RWriter().Begin(3).Item(kRawCode).Word(3).Bytes("a\nb")).strings[0], "a\nb");
  EXPECT_THAT(Read(RWriter().Begin(3).Item(kComplexCode).Word(1).Double(1).Double(2)).doubles,
              ElementsAre(1, 2));
  // The long form of a length.
  const RValue v =
      Read(RWriter().Begin(3).Item(kIntegerCode).Word(0xFFFFFFFF).Word(0).Word(2).Word(7).Word(8));
  EXPECT_THAT(v.integers, ElementsAre(7, 8));
}

TEST(RSerialization, EnvironmentsAndCodeAreReadOver) {
  RWriter w;
  w.Begin(3).List(6);
  w.Item(kEnvironmentCode).Word(0).Item(kGlobalEnvironmentCode);
  w.Cell("self").Reference(1).Null();  // the frame points back to its environment
  w.Null().Null();
  w.Item(kNamespaceCode).Word(0).Word(2).Characters("base").Characters("4.2.1");
  w.Item(kClosureCode, RWriter::kHasTag).Item(kBaseEnvironmentCode).Null();   // arguments
  w.Item(kLanguageCode).Symbol("f").Item(kPairListCode).Doubles({1}).Null();  // body
  w.Item(kBuiltinCode).Word(3).Bytes("sum");
  w.Item(kPersistentCode).Word(0).Word(1).Characters("env::1");
  w.Reference(4);  // 1 environment, 2 self, 3 name space, 4 f, 5 persistent
  const RValue v = Read(w);
  ASSERT_EQ(v.elements.size(), 6u);
  EXPECT_EQ(v.elements[0].type, RType::kEnvironment);
  EXPECT_THAT(v.elements[1].strings, ElementsAre("base", "4.2.1"));
  EXPECT_EQ(v.elements[2].type, RType::kOther);
  EXPECT_EQ(v.elements[3].type, RType::kOther);
  EXPECT_THAT(v.elements[4].strings, ElementsAre("env::1"));
  EXPECT_THAT(v.elements[5].strings, ElementsAre("f"));
}

// Head of a compact vector: class, package and type.
RWriter& Compact(RWriter& w, const std::string& class_name) {
  w.Begin(3).Item(kAlternativeCode).Item(kPairListCode).Symbol(class_name);
  return w.Item(kPairListCode).Symbol("base").Item(kPairListCode).Integers({13}).Null();
}

TEST(RSerialization, CompactVectors) {
  RWriter reals, wrapped, deferred, unknown;
  Compact(reals, "compact_realseq").Doubles({3, 0.5, -1}).Null();
  EXPECT_THAT(Read(reals).doubles, ElementsAre(0.5, -0.5, -1.5));
  Compact(wrapped, "wrap_string").List(2).Strings({"x"}).Integers({0, 0}).Null();
  EXPECT_THAT(Read(wrapped).strings, ElementsAre("x"));
  // The state is a pair: the numbers, and a setting in place of the rest of the list.
  Compact(deferred, "deferred_string").Item(kPairListCode).Integers({10, kRMissingInteger});
  deferred.Integers({0}).Null();
  EXPECT_THAT(Read(deferred).strings, ElementsAre("10", ""));
  EXPECT_THAT(Read(deferred).missing_strings, ElementsAre(1));
  Compact(unknown, "mmap_real").Null().Null();
  EXPECT_THAT(ReadRSerialized(unknown.bytes(), "f"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'mmap_real'")));
}

TEST(RSerialization, EveryTruncationIsAnError) {
  const std::string whole = SampleFrame();
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto value = ReadRSerialized(absl::string_view(whole).substr(0, n), "f.rds");
    ASSERT_THAT(value, StatusIs(absl::StatusCode::kDataLoss, StartsWith("f.rds: byte "))) << n;
  }
  EXPECT_THAT(ReadRSerialized(whole + "x", "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1 bytes more")));
}

void ExpectFault(const RWriter& w, const std::string& message, const RLimits& limits = {}) {
  const auto value = ReadRSerialized(w.bytes(), "f", limits);
  EXPECT_THAT(value, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(message)));
  EXPECT_EQ(std::string(value.status().message()).find('\n'), std::string::npos);
}

TEST(RSerialization, FaultsAreNamed) {
  ExpectFault(RWriter().Bytes("PK\3\4"), "must start with 'X'");
  ExpectFault(RWriter().Bytes("X\n").Word(9).Word(0).Word(0), "version 9");
  ExpectFault(RWriter().Begin(3).Item(kIntegerCode).Word(1000000), "integer vector of 1000000");
  ExpectFault(RWriter().Begin(3).Item(kDoubleCode).Word(2).Double(1), "double vector of 2");
  ExpectFault(RWriter().Begin(3).Item(kIntegerCode).Word(0xFFFFFFFE), "negative length");
  ExpectFault(RWriter().Begin(3).Item(kIntegerCode).Word(0xFFFFFFFF).Word(0x7FFFFFFF).Word(1),
              "2^48");
  ExpectFault(RWriter().Begin(3).Item(kStringCode).Word(1).Integers({1}),
              "where a string (9) must");
  ExpectFault(RWriter().Begin(3).Word(99), "unknown item type 99");
  ExpectFault(RWriter().Begin(3).Reference(1), "reference to item 1; 0 were seen");
  ExpectFault(RWriter().Begin(3).Integers({1}, RWriter::kHasAttributes).Integers({1}),
              "attributes are integer");
  EXPECT_THAT(ReadRSerialized("A\n3\n", "f"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("text format")));
  EXPECT_THAT(ReadRSerialized(RWriter().Begin(3).Item(kByteCodeCode).bytes(), "f"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("compiled R code")));
}

TEST(RSerialization, Limits) {
  RWriter deep, wide;
  deep.Begin(3);
  for (int i = 0; i < 200000; ++i) deep.List(1);
  ExpectFault(deep, "nested deeper than 128");
  wide.Begin(3).List(101);
  for (int i = 0; i < 101; ++i) wide.Null();
  RLimits limits;
  limits.values = 100;
  ExpectFault(wide, "more than 100 values", limits);
  for (const double count : {1e9, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    RWriter w;
    Compact(w, "compact_realseq").Doubles({count, 1, 1}).Null();
    ExpectFault(w, "sequence of");
  }
  RWriter over;
  Compact(over, "compact_intseq").Doubles({3, 2147483647, 1}).Null();
  ExpectFault(over, "integer sequence from");
}

TEST(RSerialization, RepeatedNamesAreBounded) {
  RWriter w;
  w.Begin(3).List(50).Symbol(std::string(1000, 'n'));
  for (int i = 0; i < 49; ++i) w.Reference(1);
  EXPECT_THAT(ReadRSerialized(w.bytes(), "f"), IsOk());
  RLimits limits;
  limits.bytes = 20000;
  ExpectFault(w, "names repeated", limits);
}

TEST(FactorStrings, RefusesWhatIsNoFactor) {
  EXPECT_FALSE(FactorStrings(Read(RWriter().Begin(3).Integers({1}))).ok());
  RWriter w;
  w.Begin(3).Integers({3}, RWriter::kHasAttributes).Cell("levels").Strings({"a", "b"}).Null();
  EXPECT_THAT(FactorStrings(Read(w)), StatusIs(absl::StatusCode::kDataLoss,
                                               HasSubstr("code 3 at value 0; it has 2 levels")));
}

TEST(RData, NamedValues) {
  RWriter w;
  w.Bytes("RDX3\n").Begin(3).Cell("x").Integers({1}).Cell("y").Strings({"s"}).Null();
  for (const std::string& file : {w.bytes(), ZlibOf(w.bytes())}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const RValue v, ReadRData(file, "f.RData"));
    EXPECT_THAT(ElementNames(v), ElementsAre("x", "y"));
    EXPECT_THAT(v.Element("y")->strings, ElementsAre("s"));
  }
  EXPECT_THAT(ReadRData(RWriter().Begin(3).Null().bytes(), "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'RDX2' or 'RDX3'")));
  EXPECT_THAT(ReadRData(RWriter().Bytes("RDX2\n").Begin(2).Integers({1}).bytes(), "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("holds integer")));
}

// An index of one value at `offset` and `length`.
std::string Index(int32_t offset, int32_t length) {
  RWriter w;
  w.Begin(3).List(1, RWriter::kHasAttributes).List(1, RWriter::kHasAttributes);
  w.Integers({offset, length}).Cell("names").Strings({"emma"}).Null();
  w.Item(kPairListCode, RWriter::kHasTag).Reference(1).Strings({"variables"}).Null();
  return ZlibOf(w.bytes());
}

TEST(RLazyLoad, ReadsByName) {
  const std::string value = RWriter().Begin(3).Strings({"line 1", "line 2"}).bytes();
  const std::string chunk = RWriter().Word(value.size()).Bytes(ZlibOf(value)).bytes();
  const int32_t length = static_cast<int32_t>(chunk.size());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RLazyLoad store,
                               RLazyLoad::Parse("base", Index(3, length), "pad" + chunk));
  EXPECT_THAT(store.Names(), ElementsAre("emma"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const RValue emma, store.Read("emma"));
  EXPECT_THAT(emma.strings, ElementsAre("line 1", "line 2"));
  EXPECT_THAT(store.Read("x"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("named 'x'")));
}

TEST(RLazyLoad, DamageIsNamed) {
  const std::string value = RWriter().Begin(3).Strings({"line"}).bytes();
  const auto read = [&](uint32_t size, const std::string& body) {
    const std::string chunk = RWriter().Word(size).Bytes(body).bytes();
    auto store = RLazyLoad::Parse("b", Index(0, static_cast<int32_t>(chunk.size())), chunk);
    EXPECT_THAT(store, IsOk());
    return store->Read("emma").status();
  };
  const uint32_t size = static_cast<uint32_t>(value.size());
  EXPECT_THAT(read(size, ZlibOf(value)), IsOk());
  EXPECT_THAT(read(size, "0" + value), IsOk());
  EXPECT_THAT(
      read(size + 1, ZlibOf(value)),
      StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("b.rdb: 'emma'"), HasSubstr("head"))));
  EXPECT_THAT(read(size - 1, ZlibOf(value)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("b.rdb")));
  EXPECT_THAT(read(0xFFFFFFFF, ZlibOf(value)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("most")));
  EXPECT_THAT(read(size, "2xyz"), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("bzip2")));
  EXPECT_THAT(read(size, ""), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shorter")));
  EXPECT_THAT(RLazyLoad::Parse("b", Index(0, 5), "1234"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the .rdb has 4 bytes")));
  EXPECT_FALSE(RLazyLoad::Parse("b", Index(-1, 2), "1234").ok());
  EXPECT_FALSE(RLazyLoad::Parse("b", RWriter().Begin(3).Null().bytes(), "").ok());
  EXPECT_THAT(RLazyLoad::Open("/no/such"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.rdx")));
}

}  // namespace
}  // namespace pipelab
