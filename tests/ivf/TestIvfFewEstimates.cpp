/// Searches of lists that few queries probe, by estimates: a warp takes up to
/// 16 queries of a list and 128 of its vectors (IvfFewEstimates.h).

#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "kernels/ivf/IvfDistances.h"
#include "kernels/ivf/IvfFewEstimates.h"
#include "kernels/ivf/IvfPairs.h"
#include "kernels/ivf/WithCoding.h"
#include "tests/ivf/CodingKinds.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

constexpr CodingKind kKinds[] = {
        {"Float32", ListCoding::Float32, ListLayout::Interleaved},
        {"Float32Rows", ListCoding::Float32, ListLayout::Rows},
        {"Scalar8", ListCoding::Scalar8, ListLayout::Interleaved},
        {"Scalar8Rows", ListCoding::Scalar8, ListLayout::Rows},
        {"Product8", ListCoding::Product, ListLayout::Interleaved},
        {"Product8Rows", ListCoding::Product, ListLayout::Rows}};

/// The first bounds of a search by estimates, as runIvfKnn has them written,
/// and as the other kernel writes them.
class FirstBounds {
   public:
    FirstBounds(const KernelCase& c, const IvfKnnPlan& plan, IvfKnnProblem p)
            : c_(c), p_(p), plan_(plan), memory_(plan.bytes, 0xFF) {}

    /// Whether runIvfKnn takes the kernel of few queries a list.
    bool takeFew() const {
        const IvfParams params = begin();
        return ivfFewEstimatesQueries(
                       params.lists, int64_t(params.rows) * params.lastProbe) >
                0;
    }

    struct Found {
        std::vector<float> bounds;    // [rows, stride]
        std::vector<uint32_t> widths; // [rows]
        std::vector<uint32_t> counts; // queries of each list
    };

    /// By the kernel of few queries a list, so many of them a tile, or, 0, by
    /// the other one.
    Found find(int few) const {
        IvfParams params = begin();
        beginIvfEstimates(params, p_.metric);
        const int multiprocessors = p_.device.multiprocessors;
        clearIvfCounts(params, stream_);
        launchIvfPairs(
                params,
                few > 0 ? few : kIvfItemQueries,
                few > 0 ? kIvfFewVectors : kIvfEstimateVectors,
                false,
                {},
                stream_);
        withCoding(p_.lists.coding, [&](auto coding) {
            if constexpr (hasIvfFewEstimates(coding())) {
                const auto launch = [&]<Metric kMetric>() {
                    few > 0 ? launchIvfFewEstimates<kMetric, coding()>(
                                      params, few, multiprocessors, stream_)
                            : launchIvfEstimates<kMetric, coding()>(
                                      params, false, multiprocessors, stream_);
                };
                p_.metric == Metric::L2
                        ? launch.template operator()<Metric::L2>()
                        : launch.template operator()<Metric::InnerProduct>();
            } else {
                ADD_FAILURE() << c_ << " has no such kernel";
            }
        });
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
        return {download(params.distances, size_t(c_.q) * params.stride),
                download(params.widths, size_t(c_.q)),
                download(params.counts, size_t(params.lists.numLists))};
    }

   private:
    /// Nothing is left of what was found before.
    IvfParams begin() const {
        BITS_CUDA_CHECK(
                cudaMemsetAsync(memory_.data(), 0xFF, memory_.size(), stream_));
        WorkspaceSlices slices({memory_.data(), memory_.size()});
        IvfAgainScratch(p_, plan_, slices);
        IvfParams params = beginIvfRows(
                p_, IvfScratch(p_, plan_, slices), 0, p_.numQueries, stream_);
        params.lastProbe = params.nearProbes;
        return params;
    }

    template <class T>
    static std::vector<T> download(const T* values, size_t count) {
        std::vector<T> to(count);
        BITS_CUDA_CHECK(cudaMemcpy(
                to.data(), values, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }

    const KernelCase c_;
    const IvfKnnProblem p_;
    const IvfKnnPlan plan_;
    DeviceBuffer<uint8_t> memory_;
    TestStream stream_;
};

/// Bit by bit; any NaN is no bound.
bool areSame(const std::vector<float>& one, const std::vector<float>& two) {
    bool same = one.size() == two.size();
    for (size_t i = 0; same && i < one.size(); ++i) {
        same = std::memcmp(&one[i], &two[i], sizeof(float)) == 0 ||
                (std::isnan(one[i]) && std::isnan(two[i]));
    }
    return same;
}

/// Of lower bounds, and what keys are no more above these: the key of each pair
/// is within both. The first may be a few times as wide.
void expectMeet(
        const FirstBounds::Found& one,
        const FirstBounds::Found& two,
        size_t rows) {
    ASSERT_EQ(one.bounds.size(), two.bounds.size());
    const size_t stride = one.bounds.size() / rows;
    const auto widthOf = [](const FirstBounds::Found& of, size_t row) {
        float width = 0;
        std::memcpy(&width, &of.widths[row], sizeof(width));
        return double(width);
    };
    for (size_t row = 0; row < rows; ++row) {
        const double widthOfOne = widthOf(one, row);
        const double widthOfTwo = widthOf(two, row);
        for (size_t i = row * stride; i < (row + 1) * stride; ++i) {
            const double a = one.bounds[i];
            const double b = two.bounds[i];
            ASSERT_EQ(std::isnan(a), std::isnan(b)) << row << " " << i;
            ASSERT_FALSE(a > b + widthOfTwo) << row << " " << i;
            ASSERT_FALSE(b > a + widthOfOne) << row << " " << i;
        }
        constexpr double kMost = 5;
        constexpr double kLeast = 1e-25;
        ASSERT_FALSE(widthOfOne > kMost * widthOfTwo + kLeast) << row;
    }
}

/// Of products in shared memory: parts of two components, or four. Rows of the
/// latter are held in registers where d is a multiple of 32.
int partsOf(int d) {
    return d % 8 == 0 ? d / 4 : d % 4 == 0 ? d / 2 : d;
}

/// 12 queries a list on average, so that some have more than 16, and lists at
/// the ends of groups and tiles.
KernelCase caseOf(const CodingKind& kind, int d) {
    KernelCase c;
    c.d = d;
    c.coding = kind.coding;
    c.layout = kind.layout;
    c.numParts = partsOf(d);
    c.lengths = {0,   1,   31,  32,  33,  64, 96, 127, 128, 129,
                 160, 255, 256, 257, 300, 90, 90, 90,  90,  90,
                 90,  90,  90,  90,  90,  90, 90, 90,  90,  90};
    c.q = 45;
    c.nprobe = 8;
    c.k = 1 + d % 5;
    c.lengths64 = d % 2;
    c.seed = uint32_t(d) + 11;
    return c;
}

class IvfFewEstimates : public GpuTest,
                        public testing::WithParamInterface<CodingKind> {
   protected:
    /// Whether there is a kernel with more queries of a tile.
    static bool hasMore(const KernelCase& c) {
        return c.coding != ListCoding::Product &&
                c.layout == ListLayout::Interleaved;
    }
    static void expectSame(
            const FirstBounds::Found& one,
            const FirstBounds::Found& two,
            const KernelCase& c) {
        ASSERT_TRUE(areSame(one.bounds, two.bounds)) << c;
        ASSERT_EQ(one.widths, two.widths) << c;
    }
    /// Product codes of one component a part have none.
    static bool hasKernel(const KernelCase& c) {
        return c.coding != ListCoding::Product || c.numParts < c.d;
    }

    /// The kernel that runIvfKnn takes here writes what the other one writes,
    /// or bounds of the same keys, and the search finds what is nearest.
    void search(const KernelLists& lists, EstimateMode mode, auto change) {
        const KernelCase& c = lists.c;
        const IvfKnnProblem p = lists.problem(mode);
        IvfKnnPlan plan = planIvfKnn(p, KernelLists::kMaxBytes);
        ASSERT_TRUE(plan.byEstimates() && plan.rowsAtATime == c.q) << c;
        ASSERT_EQ(plan.room > 0, mode == EstimateMode::Near) << c;
        change(plan);
        const FirstBounds bounds(c, plan, p);
        ASSERT_EQ(bounds.takeFew(), hasKernel(c)) << c;
        if (hasKernel(c)) {
            const bool areCodes = c.coding == ListCoding::Scalar8 &&
                    c.layout == ListLayout::Interleaved &&
                    c.metric == Metric::L2;
            const FirstBounds::Found others = bounds.find(0);
            const FirstBounds::Found few = bounds.find(kIvfFewQueries);
            if (areCodes && mode == EstimateMode::All) {
                SCOPED_TRACE(testing::Message() << c);
                ASSERT_NO_FATAL_FAILURE(expectMeet(few, others, size_t(c.q)));
            } else if (!areCodes) {
                ASSERT_NO_FATAL_FAILURE(expectSame(few, others, c));
            }
            if (hasMore(c)) {
                const FirstBounds::Found more = bounds.find(kIvfMoreQueries);
                ASSERT_NO_FATAL_FAILURE(expectSame(more, few, c));
            }
            counts_.insert(few.counts.begin(), few.counts.end());
        }
        for (bool scoresByRows : {false, true}) {
            SCOPED_TRACE(scoresByRows ? "by rows" : "by groups");
            plan.scoresByRows = scoresByRows;
            lists.expectExact(lists.run(plan, p));
        }
    }
    void searchAll(const KernelCase& c) {
        search(KernelLists(c), EstimateMode::All, [](IvfKnnPlan&) {});
    }
    void search(const KernelCase& c) {
        const KernelLists lists(c);
        for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
            SCOPED_TRACE(mode == EstimateMode::All ? "all" : "near");
            search(lists, mode, [](IvfKnnPlan&) {});
        }
    }

    void searchDims(const std::vector<int>& dims) {
        for (int d : dims) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                for (bool isResidual : {false, true}) {
                    if (isResidual &&
                        GetParam().coding == ListCoding::Float32) {
                        continue;
                    }
                    KernelCase c = caseOf(GetParam(), d);
                    c.metric = metric;
                    c.isResidual = isResidual;
                    search(c);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }

    /// Queries that a list had, of all cases so far.
    std::set<uint32_t> counts_;
};

TEST_P(IvfFewEstimates, SmallDims) {
    searchDims({4, 20, 128});
}

TEST_P(IvfFewEstimates, AllDims) {
    searchDims({1, 3, 8, 16, 17, 36, 63, 64, 65, 96, 100, 127});
}

/// At both sides of what a tile and a product of matrices have.
TEST_P(IvfFewEstimates, CountsOfQueries) {
    for (idx_t q = 2; q <= 32; ++q) {
        KernelCase c = caseOf(GetParam(), 32);
        c.lengths = {129, 300};
        c.nprobe = 1;
        c.q = q;
        c.metric = q % 2 ? Metric::L2 : Metric::InnerProduct;
        searchAll(c);
        if (HasFatalFailure()) {
            return;
        }
    }
    for (uint32_t count : {1, 2, 7, 8, 9, 15, 16, 17}) {
        EXPECT_EQ(counts_.count(count), 1u) << count;
    }
}

TEST_P(IvfFewEstimates, SmallFilters) {
    for (double selected : {0.1, 0.6}) {
        for (int d : {20, 128}) {
            KernelCase c = caseOf(GetParam(), d);
            c.selected = selected;
            searchAll(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// For a limit: of whole lists, or of a part of the longer ones; of vectors,
/// or of fours of them.
TEST_P(IvfFewEstimates, SmallPartsOfLists) {
    for (int d : {32, 100}) {
        KernelCase c = caseOf(GetParam(), d);
        for (int& length : c.lengths) {
            length *= 5;
        }
        const KernelLists lists(c);
        for (idx_t sample : {0, kIvfEstimateVectors, 2 * kIvfEstimateVectors}) {
            for (int boundVectors : {1, kIvfColumnStep}) {
                search(lists, EstimateMode::Near, [&](IvfKnnPlan& plan) {
                    // Its rows are for longer lists, and wide enough.
                    plan.sampleVectors = sample;
                    plan.boundVectors = boundVectors;
                });
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// One multiprocessor, so that a warp has one tile after another.
TEST_P(IvfFewEstimates, SmallGridsOfFewBlocks) {
    for (int d : {20, 128}) {
        KernelCase c = caseOf(GetParam(), d);
        c.multiprocessors = 1;
        c.isResidual = c.coding != ListCoding::Float32;
        search(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_P(IvfFewEstimates, Values) {
    for (ListFill fill :
         {ListFill::Equal,
          ListFill::Duplicates,
          ListFill::Offset,
          ListFill::Tiny,
          ListFill::Small,
          ListFill::Huge,
          ListFill::Mixed,
          ListFill::NotFinite}) {
        for (int d : {32, 40}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(GetParam(), d);
                c.fill = fill;
                c.metric = metric;
                search(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// What takes this way, and what does not.
TEST_P(IvfFewEstimates, SmallShapes) {
    const auto takes = [&](auto change) {
        KernelCase c = caseOf(GetParam(), 64);
        change(c);
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.problem(EstimateMode::All);
        const IvfKnnPlan plan = planIvfKnn(p, KernelLists::kMaxBytes);
        EXPECT_TRUE(plan.byEstimates() && plan.rowsAtATime == c.q) << c;
        return FirstBounds(c, plan, p).takeFew();
    };
    EXPECT_TRUE(takes([](KernelCase&) {}));
    EXPECT_TRUE(takes([](KernelCase& c) { c.q = 60; })); // 16 a list
    const bool takesMore = hasMore(caseOf(GetParam(), 64));
    EXPECT_EQ(takes([](KernelCase& c) { c.q = 61; }), takesMore);
    EXPECT_EQ(
            takes([](KernelCase& c) { c.q = 90; }), // 24 a list
            takesMore);
    EXPECT_FALSE(takes([](KernelCase& c) { c.q = 91; }));
    EXPECT_TRUE(takes([](KernelCase& c) { c.d = 128, c.numParts = 32; }));
    EXPECT_FALSE(takes([](KernelCase& c) { c.d = 129, c.numParts = 43; }));
    EXPECT_FALSE(takes([](KernelCase& c) { c.d = 132, c.numParts = 33; }));
    // One component a part is not looked up in shared memory.
    EXPECT_EQ(
            takes([](KernelCase& c) { c.numParts = 64; }),
            GetParam().coding != ListCoding::Product);
}

INSTANTIATE_TEST_SUITE_P(
        Codings,
        IvfFewEstimates,
        testing::ValuesIn(kKinds),
        [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace faiss_bits::test
