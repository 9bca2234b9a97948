/// Searches of lists that few queries probe, by estimates: a warp takes up to
/// 16 queries of a list and 128 of its vectors (IvfFewEstimates.h).

#include <string>

#include "kernels/ivf/IvfFewEstimates.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

struct FewKind {
    const char* name;
    ListCoding coding;
    ListLayout layout;
};

constexpr FewKind kKinds[] = {
        {"Float32", ListCoding::Float32, ListLayout::Interleaved},
        {"Float32Rows", ListCoding::Float32, ListLayout::Rows},
        {"Scalar8", ListCoding::Scalar8, ListLayout::Interleaved},
        {"Scalar8Rows", ListCoding::Scalar8, ListLayout::Rows},
        {"Product8", ListCoding::Product, ListLayout::Interleaved},
        {"Product8Rows", ListCoding::Product, ListLayout::Rows}};

/// Of products in shared memory: parts of two components, or four.
int partsOf(int d) {
    return d % 8 == 0 ? d / 4 : d % 4 == 0 ? d / 2 : d;
}

/// 12 queries a list on average, so that some have more than 16, and lists at
/// the ends of groups and tiles.
KernelCase caseOf(const FewKind& kind, int d) {
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

/// As IvfKnn.cpp asks.
bool takesFew(const KernelLists& lists) {
    IvfParams params;
    params.lists = lists.problem(EstimateMode::All).lists;
    params.d = lists.c.d;
    params.rows = uint32_t(lists.c.q);
    params.lastProbe = uint32_t(lists.c.nprobe);
    return takesIvfFewEstimates(params);
}

class IvfFewEstimates : public GpuTest,
                        public testing::WithParamInterface<FewKind> {
   protected:
    void search(const KernelCase& c) {
        const KernelLists lists(c);
        lists.expectExactByEstimates();
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
};

TEST_P(IvfFewEstimates, SmallDims) {
    searchDims({4, 20, 128});
}

TEST_P(IvfFewEstimates, AllDims) {
    searchDims({1, 2, 3, 8, 15, 16, 17, 36, 63, 64, 65, 100, 124, 127});
}

TEST_P(IvfFewEstimates, SmallFilters) {
    for (double selected : {0.1, 0.6}) {
        for (int d : {20, 128}) {
            KernelCase c = caseOf(GetParam(), d);
            c.selected = selected;
            const KernelLists lists(c);
            lists.expectExact(lists.run(EstimateMode::All));
            if (HasFatalFailure()) {
                return;
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
          ListFill::Huge,
          ListFill::Mixed,
          ListFill::NotFinite}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(GetParam(), 40);
            c.fill = fill;
            c.metric = metric;
            search(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// What takes this way, and what does not.
TEST_P(IvfFewEstimates, SmallShapes) {
    const auto takes = [&](auto change) {
        KernelCase c = caseOf(GetParam(), 64);
        change(c);
        return takesFew(KernelLists(c));
    };
    EXPECT_TRUE(takes([](KernelCase&) {}));
    EXPECT_TRUE(takes([](KernelCase& c) { c.q = 60; })); // 16 a list
    EXPECT_FALSE(takes([](KernelCase& c) { c.q = 61; }));
    EXPECT_TRUE(takes([](KernelCase& c) { c.d = 128, c.numParts = 32; }));
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
