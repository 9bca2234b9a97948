/// Searches with filters: every edge of bits and lists, every arithmetic.

#include "tests/knn/FilterHarness.h"

namespace faiss_bits::test {
namespace {

class FlatKnnFilter : public FlatKnnTest {
   protected:
    /// Every pattern and some k.
    void expectEveryFilter(
            const KnnCase& c,
            std::vector<int> ks,
            size_t maxScratch = kRoomyScratch) {
        SCOPED_TRACE(c.describe());
        const FilteredKnn search(c, handle());
        ASSERT_TRUE(search.checkRanking());
        for (Allowed allowed : kEveryAllowed) {
            for (int k : ks) {
                search.expectFiltered(allowed, k, maxScratch);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
};

KnnCase caseOf(Metric metric, DataType type, int64_t n, int64_t q, int d) {
    KnnCase c;
    c.metric = metric;
    c.dataType = type;
    c.n = n;
    c.q = q;
    c.d = d;
    return c;
}

TEST_F(FlatKnnFilter, FewQueries) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (auto [q, d] : {std::pair(1, 3), {1, 128}, {2, 33}, {16, 16}}) {
                expectEveryFilter(
                        caseOf(metric, type, 1003, q, d), {1, 10, 700});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnFilter, FewQueriesEveryWidth) {
    for (int64_t n : {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 257}) {
        for (auto [q, d] : {std::pair(1, 4), {3, 20}, {5, 40}, {1, 100}}) {
            KnnCase c = caseOf(Metric::L2, DataType::Float32, n, q, d);
            c.data = Vectors::Integers;
            expectEveryFilter(c, {5, 300});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(FlatKnnFilter, ManyQueries) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int64_t q : {17, 64}) {
                expectEveryFilter(
                        caseOf(metric, type, 1003, q, 24), {1, 10, 700});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Enough vectors that a list is used, in tiles of them and of queries.
TEST_F(FlatKnnFilter, ManyQueriesByList) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int64_t q : {17, 64, 300}) {
                const KnnCase c = caseOf(metric, type, 20011, q, 24);
                const DeviceFilter filter(
                        makeAllowed(Allowed::OneInAHundred, c.n), true);
                FlatKnnProblem p = c.shape();
                filter.apply(p);
                ASSERT_TRUE(planFlatKnn(p, kRoomyScratch).byList);
                expectEveryFilter(c, {1, 100});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnFilter, ColumnMajorAndShiftedVectors) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int64_t q : {1, 20}) {
                KnnCase c = caseOf(metric, type, 20011, q, 5);
                c.shift = 1;
                expectEveryFilter(c, {10});
                c.shift = 0;
                c.vectorsRowMajor = false;
                c.queriesRowMajor = false;
                expectEveryFilter(c, {10});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnFilter, NormsGivenAndIdsOf32Bits) {
    for (Metric metric : kMetrics) {
        for (int64_t q : {2, 40}) {
            KnnCase c = caseOf(metric, DataType::Float32, 20011, q, 12);
            c.data = Vectors::Integers;
            c.giveNorms = true;
            expectEveryFilter(c, {10});
            c.idType = IdType::Int32;
            expectEveryFilter(c, {10});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// NaN and infinite distances among the allowed and among the others.
TEST_F(FlatKnnFilter, SpecialValues) {
    for (Vectors data : {Vectors::FewNumbers, Vectors::Special}) {
        for (Metric metric : kMetrics) {
            for (int64_t q : {1, 20}) {
                KnnCase c = caseOf(metric, DataType::Float32, 20011, q, 6);
                c.data = data;
                const FilteredKnn search(c, handle());
                for (Allowed allowed : kEveryAllowed) {
                    search.expectFiltered(allowed, 100);
                }
            }
        }
    }
}

TEST_F(FlatKnnFilter, EqualVectorsGoToTheLowerId) {
    for (Metric metric : kMetrics) {
        for (int64_t q : {1, 20}) {
            KnnCase c = caseOf(metric, DataType::Float32, 20011, q, 6);
            c.data = Vectors::Equal;
            const FilteredKnn search(c, handle());
            for (Allowed allowed : kEveryAllowed) {
                search.expectFiltered(allowed, 50);
            }
        }
    }
}

/// Little scratch: tiles of vectors, by bits and by list.
TEST_F(FlatKnnFilter, TilesOfVectors) {
    for (Metric metric : kMetrics) {
        for (int64_t q : {1, 3, 40}) {
            KnnCase c = caseOf(metric, DataType::Float32, 100003, q, 4);
            c.mode = SearchMode::Plain; // which needs the least scratch
            const FilteredKnn search(c, handle());
            int listsInTiles = 0;
            for (size_t kib : {0, 60, 200, 300, 1600, 5000}) {
                const size_t scratch = kib << 10;
                for (Allowed allowed :
                     {Allowed::None,
                      Allowed::Last,
                      Allowed::OneInAHundred,
                      Allowed::OneInFive,
                      Allowed::Half,
                      Allowed::AllButOne}) {
                    const DeviceFilter filter(makeAllowed(allowed, c.n), true);
                    const FlatKnnPlan plan =
                            planFlatKnn(search.problem(filter, 20), scratch);
                    listsInTiles += plan.byList && plan.numVectorTiles > 1;
                    search.expectFiltered(allowed, 20, scratch);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
            EXPECT_GT(listsInTiles, 0) << "q=" << q;
        }
    }
}

TEST_F(FlatKnnFilter, LargeK) {
    for (Metric metric : kMetrics) {
        for (int64_t q : {1, 20}) {
            const KnnCase c = caseOf(metric, DataType::Float32, 50001, q, 4);
            const FilteredKnn search(c, handle());
            for (Allowed allowed :
                 {Allowed::None,
                  Allowed::FirstWord,
                  Allowed::OneInAHundred,
                  Allowed::OneInFive,
                  Allowed::Half,
                  Allowed::All}) {
                for (int k : {2048, 2049, 12000}) {
                    search.expectFiltered(allowed, k);
                    search.expectFiltered(allowed, k, kLeastScratch);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Pages of a batch have the bits of the whole, filter or not.
TEST_F(FlatKnnFilter, Pages) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            const KnnCase c = caseOf(metric, type, 20011, 70, 16);
            const FilteredKnn search(c, handle());
            for (Allowed allowed :
                 {Allowed::OneInAHundred, Allowed::Half, Allowed::AllButOne}) {
                const auto members = makeAllowed(allowed, c.n);
                const DeviceFilter filter(members, true);
                const FlatKnnProblem whole = search.problem(filter, 30);
                for (int64_t page : {1, 16, 33}) {
                    for (int64_t q = 0; q < c.q; q += page) {
                        const FlatKnnProblem p =
                                search.page(whole, q, std::min(page, c.q - q));
                        ASSERT_TRUE(search.check(
                                search.run(p, kRoomyScratch), members, 30, q))
                                << c.describe() << " page " << page << " at "
                                << q << " " << nameOf(allowed);
                    }
                }
            }
        }
    }
}

/// For compute-sanitizer.
TEST_F(FlatKnnFilter, Small) {
    for (Metric metric : kMetrics) {
        for (DataType type : kDataTypes) {
            for (int64_t q : {1, 3, 5, 20}) {
                const KnnCase c = caseOf(metric, type, 173, q, 9);
                const FilteredKnn search(c, handle());
                for (Allowed allowed :
                     {Allowed::None,
                      Allowed::LastWord,
                      Allowed::OneInFive,
                      Allowed::AllButOne}) {
                    search.expectFiltered(allowed, 7);
                }
            }
        }
    }
    for (Metric metric : kMetrics) {
        const KnnCase c = caseOf(metric, DataType::Float32, 16999, 18, 3);
        const FilteredKnn search(c, handle());
        search.expectFiltered(Allowed::OneInAHundred, 7);
    }
}

} // namespace
} // namespace faiss_bits::test
