/// k beyond kMaxSelectK: up to n and above it, in one tile and in many.

#include <set>
#include <stdexcept>
#include <utility>

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

/// Data whose result the contract fixes to the last bit.
const std::vector<Vectors> kExactData = {
        Vectors::Integers,
        Vectors::Equal,
        Vectors::FewNumbers};

class FlatKnnAnyK
        : public FlatKnnTest,
          public ::testing::WithParamInterface<std::tuple<Metric, DataType>> {
   protected:
    KnnCase base() const {
        KnnCase c;
        c.metric = std::get<0>(GetParam());
        c.dataType = std::get<1>(GetParam());
        c.d = 6;
        return c;
    }

    /// The case with n grown until the least scratch cuts the vectors into
    /// several tiles: how many n / k that takes depends on the scratch of the
    /// selections.
    static KnnCase cutIntoTiles(KnnCase c) {
        constexpr int64_t kMostVectors = int64_t(1) << 21;
        while (planFlatKnn(c.shape(), kLeastScratch).numVectorTiles < 2) {
            if (c.n > kMostVectors) {
                throw std::runtime_error("one tile: " + c.describe());
            }
            c.n = c.n * 3 / 2;
        }
        return c;
    }

    /// Right, and the same bits, whatever the scratch: each way in which it may
    /// cut the vectors and the queries.
    void expectAnyScratch(const KnnCase& small) {
        const KnnCase c = cutIntoTiles(small);
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        const FlatKnnProblem problem = data.problem();
        const KnnResult roomy = data.run(handle(), nullptr, 0xFF);
        ASSERT_TRUE(data.check(roomy, 4));
        const size_t most = planFlatKnn(problem, kRoomyScratch).bytes;
        std::set<std::pair<int64_t, int64_t>> cuts;
        for (size_t scratch = planFlatKnn(problem, kLeastScratch).bytes;
             scratch <= most;
             scratch += scratch / 2) {
            const FlatKnnPlan plan = planFlatKnn(problem, scratch);
            if (cuts.insert({plan.numVectorTiles, plan.tileQueries}).second) {
                data.options().maxScratch = scratch;
                ASSERT_TRUE(roomy == data.run(handle(), nullptr, 0xFF))
                        << "maxScratch=" << scratch;
            }
        }
        ASSERT_GT(cuts.rbegin()->first, 1);
        data.options().maxScratch = kLeastScratch;
        ASSERT_TRUE(roomy == data.run(handle(), nullptr, 0x00));
    }
};

INSTANTIATE_TEST_SUITE_P(
        All,
        FlatKnnAnyK,
        ::testing::Combine(
                ::testing::ValuesIn(kMetrics),
                ::testing::ValuesIn(kDataTypes)),
        [](const auto& info) {
            const bool isL2 = std::get<0>(info.param) == Metric::L2;
            return (isL2 ? "L2_" : "IP_") + nameOf(std::get<1>(info.param));
        });

TEST_P(FlatKnnAnyK, BothSidesOfEveryEdge) {
    const int n = 5003;
    for (int k : {2047, 2048, 2049, 4096, n - 1, n, n + 1, 3 * n}) {
        for (int64_t q : {1, 3, 40}) {
            for (Vectors data : {Vectors::Uniform, Vectors::Integers}) {
                KnnCase c = base();
                c.n = n;
                c.q = q;
                c.k = k;
                c.data = data;
                expectNearest(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_P(FlatKnnAnyK, NoVectorsAndFew) {
    for (int64_t n : {0, 1, 2000, 2048, 2049}) {
        for (int64_t q : {1, 40}) {
            KnnCase c = base();
            c.n = n;
            c.q = q;
            c.k = 2100;
            c.data = Vectors::Integers;
            expectNearest(c);
        }
    }
}

/// Tiles of vectors: ties across tiles fall by the id, and NaN of an early tile
/// give way to the numbers of a late one.
TEST_P(FlatKnnAnyK, MergedTiles) {
    for (Vectors data : kExactData) {
        for (int64_t q : {1, 7, 40}) {
            for (int k : {2049, 3000, 13000}) {
                KnnCase c = base();
                c.n = 250001;
                c.q = q;
                c.k = k;
                c.data = data;
                expectAnyScratch(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// A large part of a tile's columns goes into the merge.
TEST_P(FlatKnnAnyK, MergedTilesOfALargeK) {
    for (int64_t q : {2, 20}) {
        KnnCase c = base();
        c.n = 600001;
        c.q = q;
        c.k = 20000;
        c.data = Vectors::Integers;
        expectAnyScratch(c);
    }
}

TEST_P(FlatKnnAnyK, MergedTilesOfEveryLayout) {
    for (int bits = 0; bits < 16; ++bits) {
        for (int64_t q : {5, 30}) {
            KnnCase c = base();
            c.n = 60001;
            c.q = q;
            c.k = 2500;
            c.data = Vectors::Integers;
            c.vectorsRowMajor = bits & 1;
            c.queriesRowMajor = bits & 2;
            c.giveNorms = bits & 4;
            c.idType = bits & 8 ? IdType::Int32 : IdType::Int64;
            c.maxScratch = kLeastScratch;
            expectNearest(cutIntoTiles(c));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(FlatKnnAnyK, NanAndInfiniteVectors) {
    for (bool isCut : {false, true}) {
        for (int64_t q : {1, 40}) {
            for (int k : {3999, 4000, 4001}) {
                for (size_t maxScratch : {kLeastScratch, kRoomyScratch}) {
                    KnnCase c = base();
                    c.n = isCut ? 90001 : 4000;
                    c.q = q;
                    c.k = k;
                    c.data = Vectors::Special;
                    c.maxScratch = maxScratch;
                    expectNearest(isCut ? cutIntoTiles(c) : c);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_P(FlatKnnAnyK, AllOfManyVectors) {
    for (int64_t q : {1, 20}) {
        KnnCase c = base();
        c.n = 100003;
        c.q = q;
        c.k = int(c.n);
        c.data = Vectors::Integers;
        c.maxScratch = kLeastScratch;
        expectNearest(c);
    }
}

} // namespace
} // namespace faiss_bits::test
