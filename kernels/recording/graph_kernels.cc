#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/recording/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

class RecordedGraphs final : public GraphKernels {
 public:
  RecordedGraphs(GraphKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoGather(const Tensor& ids, const Tensor& x, const Tensor& y) override {
    record_->Note("GatherRows", RowsText(y), 0, {&ids, &y, &y}, [&] { of_->Gather(ids, x, y); });
  }
  void DoDropRows(const Tensor& ids, const DropoutMask& mask, const Tensor& x,
                  const Tensor& y) override {
    record_->Note("DropRows", RowsText(y), 0, {&ids, &x, &y},
                  [&] { of_->DropRows(ids, mask, x, y); });
  }
  // Rows are read once an edge.
  void DoAggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x,
                   const Tensor& y) override {
    record_->Note("Aggregate", Text(index, x), 0, {&y}, [&] { of_->Aggregate(index, mode, x, y); });
    record_->AddNumbers(index.num_edges * (RowsOf(x).columns + 1));
  }
  void DoAggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy,
                           const Tensor& dx) override {
    record_->Note("AggregateGradient", Text(index, dx), 0, {&dx},
                  [&] { of_->AggregateGradient(index, mode, dy, dx); });
    record_->AddNumbers(index.num_edges * (RowsOf(dx).columns + 2));
  }
  void DoHeadProducts(const Tensor& x, const Tensor& w, const Tensor& y) override {
    record_->Note("HeadProducts", RowsText(x), 0, {&x, &w, &y},
                  [&] { of_->HeadProducts(x, w, y); });
  }
  void DoHeadProductsInputGradient(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    record_->Note("HeadProductsInputGradient", RowsText(dx), 0, {&dy, &w, &dx, &dx},
                  [&] { of_->HeadProductsInputGradient(dy, w, dx); });
  }
  void DoHeadProductsWeightGradient(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    record_->Note("HeadProductsWeightGradient", RowsText(x), 0, {&x, &dy, &dw},
                  [&] { of_->HeadProductsWeightGradient(x, dy, dw); });
  }
  void DoEdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source,
                     const Tensor& target, const Tensor& a) override {
    record_->Note("EdgeSoftmax", Text(index, source), 0, {&a, &a, &target},
                  [&] { of_->EdgeSoftmax(index, slope, source, target, a); });
  }
  void DoEdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source,
                             const Tensor& target, const Tensor& a, const Tensor& da,
                             const Tensor& dsource, const Tensor& dtarget) override {
    record_->Note(
        "EdgeSoftmaxGradient", Text(index, source), 0, {&a, &a, &da, &da, &dsource, &dtarget},
        [&] { of_->EdgeSoftmaxGradient(index, slope, source, target, a, da, dsource, dtarget); });
  }
  void DoWeighed(const GraphIndex& index, const Tensor& a, const Tensor& x,
                 const Tensor& y) override {
    record_->Note("Weighed", Text(index, x), 0, {&a, &y}, [&] { of_->Weighed(index, a, x, y); });
    record_->AddNumbers(index.num_edges * RowsOf(x).columns);
  }
  void DoWeighedGradient(const GraphIndex& index, const Tensor& a, const Tensor& x,
                         const Tensor& dy, const Tensor& da, const Tensor& dx) override {
    record_->Note("WeighedGradient", Text(index, x), 0, {&a, &da, &dx, &x},
                  [&] { of_->WeighedGradient(index, a, x, dy, da, dx); });
    record_->AddNumbers(index.num_edges * RowsOf(x).columns);
  }

 private:
  static std::string Text(const GraphIndex& index, const Tensor& x) {
    return absl::StrCat(index.num_sources, "->", index.num_targets, "/", index.num_edges, "edges/",
                        RowsOf(x).columns);
  }

  GraphKernels* const of_;
  CallRecord* const record_;
};

}  // namespace

std::unique_ptr<GraphKernels> RecordGraphs(GraphKernels* of, CallRecord* record) {
  return std::make_unique<RecordedGraphs>(of, record);
}

}  // namespace pipelab
