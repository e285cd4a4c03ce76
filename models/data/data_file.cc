#include "models/data/data_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/data/csv.h"
#include "models/data/image_files.h"
#include "models/data/random_batches.h"
#include "models/data/table_batches.h"
#include "models/data/text_batches.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// "ids below 82 [128]", "numbers [28, 28, 1]".
std::string Described(const DataField& field) {
  return absl::StrCat(
      field.type == FieldType::kId ? absl::StrCat("ids below ", field.limit) : "numbers", " [",
      absl::StrJoin(field.shape, ", "), "]", field.padded ? " or none" : "");
}

const DataField* Find(const std::vector<DataField>& fields, absl::string_view name) {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const DataField& f) { return f.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

class Opener {
 public:
  Opener(std::string what, std::string path, const ModelGraph& graph,
         const DataFileOptions& options)
      : what_(std::move(what)),
        path_(std::move(path)),
        reads_(FieldsOf(graph)),
        options_(options) {}

  absl::StatusOr<DataFile> Open() {
    if (IsDirectory(path_)) return Images();
    if (absl::EndsWith(path_, ".csv")) return Table();
    return Text();
  }

 private:
  absl::Status Error(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat(what_, ": ", status.message()));
  }
  absl::Status Lacks(absl::string_view field, absl::string_view kind) const {
    return Error(absl::InvalidArgumentError(
        absl::StrCat(kind, " gives \"", field, "\"; the network reads ",
                     absl::StrJoin(reads_, ", ", [](std::string* out, const DataField& f) {
                       absl::StrAppend(out, "\"", f.name, "\"");
                     }))));
  }

  absl::StatusOr<DataFile> Table() {
    if (Find(reads_, kFeatures) == nullptr) return Lacks(kFeatures, "a table");
    const absl::StatusOr<std::string> text = ReadTextFile(path_);
    if (!text.ok()) return Error(text.status());
    PIPELAB_ASSIGN_OR_RETURN(const DataTable table, FaultOfFile(ParseCsv(*text, what_)));
    const DataField* targets = Find(reads_, kTargets);
    TableOptions options;
    options.targets = options_.targets;
    options.classes = targets != nullptr && targets->type == FieldType::kId;
    options.batch_samples = options_.batch_samples;
    options.seed = options_.seed;
    PIPELAB_ASSIGN_OR_RETURN(TableData data, MakeTableData(table, what_, options));
    return DataFile{path_, std::move(data.train), std::move(data.held_out)};
  }

  absl::StatusOr<DataFile> Text() {
    const DataField* tokens = Find(reads_, kTokens);
    if (tokens == nullptr) return Lacks(kTokens, "a text");
    const absl::StatusOr<std::string> text = ReadTextFile(path_);
    if (!text.ok()) return Error(text.status());
    absl::StatusOr<TextData> data =
        MakeTextData({path_, {path_}, {*text}}, tokens->shape[0], options_.seed);
    if (!data.ok()) return FaultOfFile(Error(data.status()));
    return DataFile{path_, std::move(data->train), std::move(data->held_out)};
  }

  absl::StatusOr<DataFile> Images() {
    const DataField* image = Find(reads_, kImage);
    if (image == nullptr || image->shape.size() != 3) return Lacks(kImage, "a folder of images");
    absl::StatusOr<ImageData> data = ImagesOf(*image);
    if (!data.ok()) return Error(data.status());
    const ExampleOrder order(data->train->size(), options_.batch_samples, options_.seed, "data");
    return DataFile{
        path_, std::make_unique<ImageBatchSource>(data->train, data->scale, ImageOptions(), order),
        std::make_unique<ImageBatchSource>(data->held_out, data->scale, ImageOptions(),
                                           ExampleOrder(data->held_out->size()))};
  }

  absl::StatusOr<ImageData> ImagesOf(const DataField& field) const {
    for (const char* end : {"", ".gz"}) {
      const std::string images = JoinPath(path_, absl::StrCat("train-images-idx3-ubyte", end));
      if (!PathExists(images)) continue;
      PIPELAB_ASSIGN_OR_RETURN(
          const auto read,
          ReadIdxImages(images, JoinPath(path_, absl::StrCat("train-labels-idx1-ubyte", end))));
      return FaultOfFile(SplitImages(*read, path_, options_.seed));
    }
    const int64_t channels = field.shape[2];
    if (field.shape[0] != field.shape[1] || (channels != 1 && channels != 3)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pictures become squares of 1 or 3 channels; the network reads ", Described(field)));
    }
    PIPELAB_ASSIGN_OR_RETURN(const auto read,
                             FaultOfFile(ReadImageFolder(path_, {field.shape[0], channels})));
    return FaultOfFile(SplitImages(*read, path_, options_.seed));
  }

  const std::string what_, path_;
  const std::vector<DataField> reads_;
  const DataFileOptions& options_;
};

}  // namespace

absl::Status CheckFits(const ModelGraph& graph, const std::vector<DataField>& offered,
                       absl::string_view what) {
  for (const LayerSpec& layer : graph.layers) {
    for (const DataField& field : layer.data) {
      const DataField* has = Find(offered, field.name);
      if (has != nullptr && has->type == field.type && has->shape == field.shape &&
          has->limit <= field.limit && (field.padded || !has->padded)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": layer \"", layer.name, "\" reads \"", field.name, "\" as ",
                       Described(field), "; the data has ",
                       has == nullptr ? absl::StrCat("no \"", field.name, "\"") : Described(*has)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<DataFile> OpenDataFile(absl::string_view option, absl::string_view path,
                                      const ModelGraph& graph, const DataFileOptions& options) {
  const std::string what = absl::StrCat(option, "=", path);
  if (options.batch_samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": a step of ", options.batch_samples, " samples; at least 1"));
  }
  Opener opener(what, ResolveOutputPath(path, ""), graph, options);
  PIPELAB_ASSIGN_OR_RETURN(DataFile data, opener.Open());
  PIPELAB_RETURN_IF_ERROR(CheckFits(graph, data.train->fields(), what));
  return data;
}

}  // namespace pipelab
