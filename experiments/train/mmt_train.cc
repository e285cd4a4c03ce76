// tools/bazel run //experiments:mmt_train
//
// Trains a multi-modal Transformer of two branches, one for pictures and one for names, to tell the
// group of an emoji, beside networks of each branch alone, and compares them on emoji that training
// saw under no name.
//
// A sample is a picture and one name. A held-out emoji counts as the share of its names under which
// a network is right, so that each emoji weighs the same; beside it stands the accuracy where the
// log-probabilities of all its names are added up before one group is chosen. Each network is
// trained --repeats times with the data in another order, and an emoji's figure is the mean. Emoji
// are the sample that standard errors are about, and networks are compared emoji by emoji.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/flags/option_checks.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/train/emoji_verdicts.h"
#include "experiments/train/predict.h"
#include "experiments/train/run_study.h"
#include "models/data/emoji.h"
#include "models/data/emoji_batches.h"
#include "models/data/images.h"
#include "models/data/metrics.h"
#include "models/data/package_cache.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/mmt.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace mmt_train_study {

STUDY_FLAG(int, repeats, 3, "trainings of each network, with the data in another order");

// Related languages, so that parts of words come again.
const char* const kLanguages[] = {"cs", "da", "de", "en", "es", "fr",
                                  "it", "nl", "pl", "pt", "ro", "sv"};
constexpr int64_t kCurveNames = 500;
constexpr char kBoth[] = "both", kNameAlone[] = "name_alone", kPictureAlone[] = "picture_alone";

struct Emoji {
  EmojiData data;  // names of kLanguages
  EmojiOptions options;
  std::shared_ptr<const CharacterVocabulary> vocabulary;
  PixelScale scale;
  std::map<std::string, std::vector<EmojiVerdicts>> verdicts;  // by network, one a repeat
};

EmojiSet WithNames(const EmojiSet& set) {
  std::vector<bool> named(set.images.size());
  for (const EmojiName& name : set.names) named[name.emoji] = true;
  return SelectEmoji(set, named);
}

// A fifth of the training emoji takes the place of the held-out ones.
void HoldOutTrainingEmoji(EmojiData* data) {
  const CounterRng rng(/*seed=*/1, "study/emoji/validation");
  std::vector<bool> kept;
  for (int64_t i = 0; i < data->train.images.size(); ++i) kept.push_back(rng.Below(i, 5) != 0);
  const EmojiSet all = std::move(data->train);
  data->train = SelectEmoji(all, kept);
  kept.flip();
  data->held_out = SelectEmoji(all, kept);
}

absl::StatusOr<std::shared_ptr<Emoji>> LoadEmojiOf(const StudyRequest& request) {
  const auto emoji = std::make_shared<Emoji>();
  EmojiData& data = emoji->data;
  data = SyntheticEmoji(/*train=*/200, /*held_out=*/40, request.seed);
  if (!request.synthetic) {
    PIPELAB_ASSIGN_OR_RETURN(data, FetchEmoji(DefaultDataCache()));
    const std::vector<std::string> languages(std::begin(kLanguages), std::end(kLanguages));
    data.train = KeepLocales(data, data.train, languages);
    data.held_out = KeepLocales(data, data.held_out, languages);
  }
  if (request.validation) HoldOutTrainingEmoji(&data);
  data.held_out = WithNames(data.held_out);
  emoji->options.ngram = 3;
  emoji->vocabulary =
      std::make_shared<const CharacterVocabulary>(NameVocabulary(data, emoji->options));
  emoji->scale = ScaleOf(data.train.images);
  return emoji;
}

absl::StatusOr<ModelGraph> Network(const Emoji& emoji, const std::string& part) {
  MmtModality text, picture;
  text.field = kText;
  text.length_field = kTextLength;
  text.tokens = emoji.options.text_length;
  text.vocabulary = TextIds(*emoji.vocabulary, emoji.options);
  picture.kind = MmtModality::kPicture;
  picture.field = kImage;
  picture.height = picture.width = kEmojiSide;
  picture.channels = 3;
  picture.patch = 8;
  MmtConfig config;
  config.layers = 2;
  config.hidden = 48;
  config.heads = 4;
  config.feed_forward = 96;
  config.dropout = 0.2;
  config.classes = static_cast<int64_t>(emoji.data.groups.size());
  if (part != kPictureAlone) config.modalities.push_back(text);
  if (part != kNameAlone) config.modalities.push_back(picture);
  return BuildMmt(config);
}

// Always given both, the network of two branches leans on the one that it learns by heart first.
// So most samples have one input; that the logits of the branches add up makes the rest of it.
EmojiOptions TrainingOptionsOf(const Emoji& emoji, const std::string& part) {
  EmojiOptions options = emoji.options;
  options.augmentation = {/*shift=*/4, /*flip=*/true};
  options.mask = 0.5;
  if (part == kBoth) options.blank = 0.8;
  return options;
}

absl::StatusOr<StudyPart> MakePart(const std::shared_ptr<Emoji>& emoji, const std::string& name,
                                   int repeat, const StudyRequest& request) {
  const EmojiData& data = emoji->data;
  StudyPart part;
  part.name = absl::StrCat(name, "_", repeat);
  PIPELAB_ASSIGN_OR_RETURN(part.graph, Network(*emoji, name));
  if (name == kBoth) {
    PIPELAB_ASSIGN_OR_RETURN(part.parallel_stages,
                             BranchStages(part.graph, /*stages_of_branch=*/1));
  }
  part.train = std::make_shared<EmojiBatchSource>(
      data.train, emoji->scale, emoji->vocabulary, TrainingOptionsOf(*emoji, name),
      ExampleOrder(static_cast<int64_t>(data.train.names.size()), request.batch_samples,
                   request.seed, absl::StrCat("data/emoji/", repeat)));
  const int64_t names = static_cast<int64_t>(data.held_out.names.size());
  const auto held_out = std::make_shared<EmojiBatchSource>(
      data.held_out, emoji->scale, emoji->vocabulary, emoji->options, ExampleOrder(names));
  part.held_out = held_out;
  part.held_out_samples = std::min(kCurveNames, names);
  part.judge = [emoji, held_out, name, names](SerialTrainer* trained) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> logits, Predict(trained, *held_out, names));
    emoji->verdicts[name].push_back(VerdictsOf(emoji->data.held_out, logits));
    return absl::OkStatus();
  };
  return part;
}

double LargestGroupAccuracy(const EmojiData& data) {
  std::vector<double> count(data.groups.size());
  for (const uint8_t label : data.train.images.labels) ++count[label];
  const auto& asked = data.held_out.images.labels;
  return static_cast<double>(std::count(asked.begin(), asked.end(), ArgMax(count))) /
         static_cast<double>(asked.size());
}

// Whether two branches are better than the other network, emoji by emoji.
Quality::Claim ClaimOver(const Emoji& emoji, const std::string& other, const std::string& title) {
  const std::vector<double> both = MeanOver(emoji.verdicts.at(kBoth), &EmojiVerdicts::by_name),
                            alone = MeanOver(emoji.verdicts.at(other), &EmojiVerdicts::by_name);
  std::vector<double> difference;
  for (size_t e = 0; e < both.size(); ++e) difference.push_back(both[e] - alone[e]);
  const MeanWithError d = MeanOf(difference);
  return Quality::Above(
      absl::StrCat("over_", other),
      absl::StrFormat("accuracy of two branches above that of %s (standard error of the difference "
                      "over emoji %.4f)",
                      title, d.error),
      MeanOf(both).mean, MeanOf(alone).mean);
}

Quality Compare(const Emoji& emoji) {
  const EmojiData& data = emoji.data;
  Quality q;
  q.caption = absl::StrCat("The group of ", data.held_out.images.size(), " held-out emoji, ",
                           data.held_out.names.size(), " names");
  q.metrics = {{"accuracy", "accuracy, one name", "", 4},
               {"error", "standard error", "", 4},
               {"together", "accuracy, all names", "", 4},
               {"together_error", "standard error", "", 4}};
  const std::pair<const char*, const char*> networks[] = {{kBoth, "MMT, both branches"},
                                                          {kNameAlone, "names alone"},
                                                          {kPictureAlone, "pictures alone"}};
  double ours = 0;
  for (const auto& [name, title] : networks) {
    const std::vector<EmojiVerdicts>& v = emoji.verdicts.at(name);
    const MeanWithError a = MeanOf(MeanOver(v, &EmojiVerdicts::by_name)),
                        b = MeanOf(MeanOver(v, &EmojiVerdicts::together));
    if (name == kBoth) ours = a.mean;
    q.rows.push_back({title, {a.mean, a.error, b.mean, b.error}});
  }
  const double nearest = NearestMeanAccuracy(data.train.images, data.held_out.images);
  const double largest = LargestGroupAccuracy(data);
  const auto baseline = [&q](const char* name, double accuracy) {
    q.rows.push_back({name, {accuracy, absl::nullopt, absl::nullopt, absl::nullopt}});
  };
  baseline("nearest group mean of the pictures", nearest);
  baseline("always the largest group", largest);
  q.claims = {
      ClaimOver(emoji, kNameAlone, "names alone"),
      ClaimOver(emoji, kPictureAlone, "pictures alone"),
      Quality::Above("over_baselines",
                     "accuracy of two branches above the nearest group mean's and the largest "
                     "group's",
                     ours, std::max(nearest, largest))};
  q.notes = {
      "One name: the share of an emoji's names under which the group is right, each with the "
      "picture. All names: the group of the largest sum of log-probabilities over the names. Means "
      "over the repeats; errors are over emoji, and of differences over the differences of each."};
  return q;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  PIPELAB_ASSIGN_OR_RETURN(const std::shared_ptr<Emoji> emoji, LoadEmojiOf(request));
  const EmojiData& data = emoji->data;
  StudyWork work;
  const int repeats = absl::GetFlag(FLAGS_repeats);
  for (int repeat = 1; repeat <= repeats; ++repeat) {
    for (const char* name : {kBoth, kNameAlone, kPictureAlone}) {
      PIPELAB_ASSIGN_OR_RETURN(StudyPart part, MakePart(emoji, name, repeat, request));
      work.parts.push_back(std::move(part));
    }
  }
  work.data =
      absl::StrCat(request.synthetic ? "synthetic emoji" : "emoji", " (", data.train.images.size(),
                   " with ", data.train.names.size(), " names for training, ",
                   data.held_out.images.size(), " with ", data.held_out.names.size(), " held out)");
  work.quality = [emoji]() -> absl::StatusOr<Quality> { return Compare(*emoji); };
  return work;
}

}  // namespace mmt_train_study

int RunMmtTrainStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  Study study;
  study.name = "mmt_train";
  study.title = "A multi-modal Transformer on emoji";
  study.summary =
      "Trains Transformer branches over pictures and names of emoji to tell their groups, together "
      "and each alone, and compares them on emoji that training saw under no name.";
  study.defaults = {
      {"scheme", "graph"},        {"devices", "2"},         {"steps", "4000"},
      {"micro_batch_size", "32"}, {"micro_batches", "2"},   {"learning_rate", "0.003"},
      {"warmup_steps", "100"},    {"rate_decay", "cosine"}, {"weight_decay", "0.5"}};
  study.quick.emplace_back("repeats", "1");
  study.check = [] {
    return CheckRange("--repeats", absl::GetFlag(mmt_train_study::FLAGS_repeats), 1, 100);
  };
  study.load = mmt_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
