/// Queries that share lists of interleaved codes: tiles of four groups of 32
/// vectors, of which a lane has four vectors (kernels/ivf/IvfFoursStages.cuh),
/// against the canonical distances of the decoded vectors.

#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

struct FoursKind {
    const char* name;
    ListCoding coding;
};

constexpr FoursKind kKinds[] = {
        {"Float16", ListCoding::Float16},
        {"Scalar8", ListCoding::Scalar8},
        {"Scalar6", ListCoding::Scalar6},
        {"Scalar4", ListCoding::Scalar4}};

class IvfFoursScan : public GpuTest,
                     public testing::WithParamInterface<FoursKind> {
   protected:
    static KernelCase foursCase(int d, uint32_t seed) {
        KernelCase c = someCase(seed);
        c.coding = GetParam().coding;
        c.d = d;
        c.isResidual = seed % 2;
        c.metric = seed % 3 == 0 ? Metric::InnerProduct : Metric::L2;
        return c;
    }

    static void expectShared(const KernelCase& c) {
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.plainProblem();
        const IvfKnnPlan plan = planOf(p, false, true);
        ASSERT_TRUE(plan.direct) << c;
        lists.expectExact(lists.run(plan, p));
        // Whatever the scratch holds.
        lists.expectExact(lists.run(plan, p, 0));
    }
};

TEST_P(IvfFoursScan, SmallDims) {
    // At both sides of steps of eight components, and of the parts of 64 and
    // 128 that a stage has.
    for (int d : {33, 40, 65, 127, 129, 200}) {
        for (uint32_t seed : {1u, 2u, 3u}) {
            KernelCase c = foursCase(d, seed);
            c.lengths = {0, 140, 33, 1};
            c.nprobe = 3;
            expectShared(c);
        }
    }
}

TEST_P(IvfFoursScan, Dims) {
    for (int d : {34,  39,  41,  47,  48,  63,  64,   71,   72,  96,  100,
                  120, 126, 128, 130, 135, 136, 191,  192,  193, 255, 256,
                  257, 384, 385, 511, 512, 768, 1000, 1023, 1024}) {
        for (uint32_t seed : {uint32_t(d), uint32_t(d) + 1}) {
            KernelCase c = foursCase(d, seed);
            c.lengths = unevenLengths(6, 300, seed);
            c.nprobe = 4;
            expectShared(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(IvfFoursScan, SmallLengths) {
    // At both sides of halves of groups, groups and tiles.
    for (int length : {1, 16, 17, 32, 33, 96, 97, 127, 128, 129, 256, 257}) {
        KernelCase c = foursCase(72, uint32_t(length));
        c.lengths = {length, 0, length, 3};
        c.nprobe = 4;
        c.k = 100;
        expectShared(c);
    }
}

TEST_P(IvfFoursScan, SmallNumbersOfQueries) {
    // Of one list: parts of a tile, whole ones, several.
    for (idx_t q : {2, 3, 4, 5, 6, 7, 8, 9, 33}) {
        KernelCase c = foursCase(q % 2 ? 130 : 48, uint32_t(q));
        c.lengths = {150, 70};
        c.nprobe = 2;
        c.q = q;
        expectShared(c);
    }
}

TEST_P(IvfFoursScan, SmallFilters) {
    // Groups of which none is selected are not read; a tile may have some
    // others, and residuals want its centroid all the same.
    for (double selected : {0.0, 0.004, 0.02, 0.5}) {
        for (int d : {40, 128, 200}) {
            for (bool isResidual : {false, true}) {
                KernelCase c = foursCase(d, uint32_t(d));
                c.lengths = {0, 700, 130, 260, 31};
                c.nprobe = 4;
                c.selected = selected;
                c.isResidual = isResidual;
                c.evenWords = d == 128;
                expectShared(c);
            }
        }
    }
}

TEST_P(IvfFoursScan, FiltersByIds) {
    for (KernelFilter filter : {KernelFilter::IdBits, KernelFilter::IdRange}) {
        for (double selected : {0.01, 0.5, 1.0}) {
            KernelCase c = foursCase(96, uint32_t(selected * 100));
            c.lengths = unevenLengths(12, 500, c.seed);
            c.filter = filter;
            c.selected = selected;
            expectShared(c);
        }
    }
}

TEST_P(IvfFoursScan, SmallListsBeginAnywhere) {
    for (int d : {33, 128, 132}) {
        KernelCase c = foursCase(d, uint32_t(d));
        c.listShift = c.coding == ListCoding::Float16 ? 2 : 1;
        expectShared(c);
    }
}

TEST_P(IvfFoursScan, HardValues) {
    for (ListFill fill :
         {ListFill::Integers,
          ListFill::Equal,
          ListFill::Duplicates,
          ListFill::Offset,
          ListFill::Tiny,
          ListFill::Small,
          ListFill::Huge,
          ListFill::Mixed,
          ListFill::NotFinite}) {
        for (uint32_t seed : {20u, 21u, 24u, 25u}) {
            for (int k : {1, 10, 100}) {
                KernelCase c = foursCase(76, seed);
                c.fill = fill;
                c.k = k;
                expectShared(c);
            }
        }
    }
}

TEST_P(IvfFoursScan, ManyNeighbours) {
    // From 129 on a matrix of distances, with NaN behind the last.
    for (int k : {128, 129, 1000}) {
        for (int d : {40, 128}) {
            KernelCase c = foursCase(d, uint32_t(k));
            c.lengths = unevenLengths(8, 260, c.seed);
            c.k = k;
            expectShared(c);
        }
    }
}

TEST_P(IvfFoursScan, EveryGrid) {
    // Blocks that begin and end within a run, have many, or none.
    for (int multiprocessors : {1, 3, 132}) {
        for (idx_t q : {4, 64, 256, 512}) {
            KernelCase c = foursCase(130, uint32_t(multiprocessors + q));
            c.lengths = unevenLengths(5, 700, c.seed);
            c.nprobe = 3;
            c.q = q;
            c.multiprocessors = multiprocessors;
            expectShared(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        IvfFoursScan,
        testing::ValuesIn(kKinds),
        [](const auto& info) { return info.param.name; });

} // namespace
} // namespace faiss_bits::test
