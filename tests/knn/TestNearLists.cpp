/// Lists of products against exact distances: what is left of them has all up
/// to what they say is complete.

#include "kernels/common/Error.h"
#include "kernels/knn/fused/NearLists.h"
#include "tests/common/ExpectError.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

class NearLists : public GpuTest {
   protected:
    std::string lack() const override {
        return lackFor(
                TensorScanKernel::Wgmma, deviceTraits().computeCapability);
    }

    void prepare() override {
        ASSERT_TRUE(canKeepProducts(deviceTraits())) << "the kernel is missing";
    }

    struct Rows {
        std::vector<uint32_t> counts;
        std::vector<float> limits;
        std::vector<float> complete;
    };

    /// Images, exact keys, and a scan to products.
    struct Scan {
        Scan(const TensorCase& c, uint32_t room)
                : Scan(c, room, std::mt19937(c.seed)) {}

        /// Braces: vectors are drawn first.
        Scan(const TensorCase& c, uint32_t room, std::mt19937 random)
                : Scan{c,
                       room,
                       tensorRows(c, c.n, random),
                       tensorRows(c, c.numQueries, random)} {}

        /// Of these rows, whatever the case says of values.
        Scan(const TensorCase& c,
             uint32_t room,
             std::vector<float> vectorRows,
             std::vector<float> queryRows)
                : c(c),
                  room(room),
                  vectors(std::move(vectorRows), c.d),
                  queries(std::move(queryRows), c.d),
                  images(c, vectors, queries, stream),
                  products(c.numQueries * room),
                  columns(c.numQueries * room) {
            for (int64_t q = 0; q < c.numQueries; ++q) {
                for (int64_t v = 0; v < c.n; ++v) {
                    keys.push_back(exactKey(
                            c.metric,
                            &vectors.values[v * c.d],
                            &queries.values[q * c.d],
                            c.d,
                            vectors.lengths[v] * queries.lengths[q]));
                }
            }
        }

        std::vector<uint32_t> run(const std::vector<float>& limits) {
            const DeviceBuffer<float> deviceLimits(limits);
            const DeviceBuffer<uint32_t> counts(c.numQueries, 0);
            TensorScanProblem problem;
            problem.metric = c.metric;
            problem.numQueries = c.numQueries;
            problem.numVectors = c.n;
            problem.d = c.d;
            problem.queries = images.queries.image;
            problem.vectors = images.vectors.image;
            problem.queryNorms = images.queries.norms();
            problem.passed.limits = deviceLimits.data();
            problem.passed.counts = counts.data();
            problem.passed.products = products.data();
            problem.passed.capacity = room;
            runTensorScan(problem, deviceTraits(), stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            return counts.download();
        }

        /// k: results that are wanted, 0: `rank` of them.
        Rows near(
                const Rows& before,
                uint32_t rank,
                bool areLimits,
                uint32_t k = 0) {
            const DeviceBuffer<uint32_t> counts(before.counts);
            const DeviceBuffer<float> limits(before.limits);
            const DeviceBuffer<float> complete(before.complete);
            NearListsParams params;
            CertifiedParams& search = params.search;
            search.d = c.d;
            search.k = int(k > 0 ? k : rank);
            search.rows = uint32_t(c.numQueries);
            search.numCandidates = int(room);
            search.bound.ofImages = true;
            search.imageFacts = images.vectors.image.facts;
            search.queryResiduals = images.queries.image.residuals;
            search.queryNorms = images.queries.norms();
            params.inverses = images.queries.image.inverses;
            params.products = products.data();
            params.columns = columns.data();
            params.rank = rank;
            params.counts = counts.data();
            params.limits = limits.data();
            params.complete = complete.data();
            (areLimits ? launchNearLimits : launchNearLists)(
                    c.metric, params, stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            return {counts.download(), limits.download(), complete.download()};
        }

        double key(int64_t q, int64_t v) const {
            return keys[q * c.n + v];
        }

        const TensorCase c;
        const uint32_t room;
        TensorRows vectors;
        TensorRows queries;
        TestStream stream;
        DeviceScanImages images;
        DeviceBuffer<uint64_t> products;
        DeviceBuffer<int32_t> columns;
        std::vector<double> keys;
    };

    static TensorCase of(Metric metric, int64_t q, int64_t n, int d) {
        TensorCase c;
        c.metric = metric;
        c.numQueries = q;
        c.n = n;
        c.d = d;
        return c;
    }

    /// All pass; lists are cut to `rank`. Returns how many entries are left of
    /// a list at most.
    static uint32_t expectLists(const TensorCase& c, uint32_t rank) {
        SCOPED_TRACE(c.name() + " rank=" + std::to_string(rank));
        Scan scan(c, uint32_t(c.n));
        const std::vector<float> all(c.numQueries, INFINITY);
        const Rows before{scan.run(all), all, all};
        const auto products = scan.products.download();
        const Rows after = scan.near(before, rank, false);
        const auto columns = scan.columns.download();
        uint32_t most = 0;
        for (int64_t q = 0; q < c.numQueries; ++q) {
            EXPECT_EQ(before.counts[q], uint32_t(c.n));
            EXPECT_LE(after.counts[q], before.counts[q]);
            EXPECT_EQ(after.limits[q], before.limits[q]);
            most = std::max(most, after.counts[q]);
            std::vector<bool> in(c.n);
            for (uint32_t i = 0; i < after.counts[q]; ++i) {
                const uint32_t v = uint32_t(columns[q * scan.room + i]);
                if (v >= c.n || in[v]) {
                    ADD_FAILURE() << "query " << q << ": " << v;
                    return most;
                }
                in[v] = true;
            }
            int64_t belonging = 0;
            for (int64_t v = 0; v < c.n; ++v) {
                // Rounded to float32, as canonical distances are.
                const float key = float(scan.key(q, v));
                const bool belongs = key <= after.complete[q];
                belonging += belongs;
                if (belongs && !in[v]) {
                    ADD_FAILURE() << "query " << q << " vector " << v
                                  << ": key " << key << " is complete up to "
                                  << after.complete[q];
                    return most;
                }
            }
            if (c.values == TensorValues::Uniform) {
                EXPECT_GE(belonging, std::min<int64_t>(rank, c.n))
                        << "query " << q << " would be searched again";
            }
        }
        return most;
    }
};

TEST_F(NearLists, SmallOfEveryRank) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {257, 300, 768}) {
            for (int64_t n : {1, 31, 32, 33, 256, 257}) {
                for (uint32_t rank : {1, 10, 32, 300}) {
                    const uint32_t most =
                            expectLists(of(metric, 9, n, d), rank);
                    EXPECT_LE(most, std::min<int64_t>(n, rank + 32));
                }
            }
        }
    }
}

TEST_F(NearLists, LongLists) {
    for (int64_t n : {1023, 1024, 1025, 1500}) {
        for (uint32_t rank : {5, 100, 1000}) {
            const uint32_t most = expectLists(of(Metric::L2, 70, n, 320), rank);
            // Lists beyond the registers of a warp stay as they are.
            EXPECT_LE(most, n > int64_t(kMostNearEntries) ? n : rank + 96);
        }
    }
}

TEST_F(NearLists, HardValues) {
    for (TensorValues values :
         {TensorValues::Integers,
          TensorValues::Duplicates,
          TensorValues::Scattered,
          TensorValues::Infinities,
          TensorValues::NaNs,
          TensorValues::Denormals,
          TensorValues::Huge,
          TensorValues::Tiny,
          TensorValues::Far}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            TensorCase c = of(metric, 40, 400, 290);
            c.values = values;
            expectLists(c, 20);
            c.addedLater = 100;
            expectLists(c, 20);
        }
    }
}

/// Counts beyond the room: columns of all that is there, and the count stays.
TEST_F(NearLists, FullLists) {
    const TensorCase c = of(Metric::L2, 20, 600, 300);
    Scan scan(c, 100);
    const std::vector<float> all(c.numQueries, INFINITY);
    const Rows before{scan.run(all), all, all};
    const auto products = scan.products.download();
    const Rows after = scan.near(before, 10, false);
    const auto columns = scan.columns.download();
    for (int64_t q = 0; q < c.numQueries; ++q) {
        ASSERT_GT(before.counts[q], scan.room);
        EXPECT_EQ(after.counts[q], before.counts[q]);
        EXPECT_EQ(after.complete[q], before.complete[q]);
        for (uint32_t i = 0; i < scan.room; ++i) {
            ASSERT_EQ(
                    uint32_t(columns[q * scan.room + i]),
                    uint32_t(products[q * scan.room + i]));
        }
    }
}

/// A scan within the new limit has all up to what it says is complete.
TEST_F(NearLists, Limits) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (uint32_t rank : {1, 7, 60}) {
            for (int64_t n : {20, 500, 513}) {
                const TensorCase c = of(metric, 33, n, 270);
                Scan scan(c, uint32_t(n));
                const std::vector<float> all(c.numQueries, INFINITY);
                const Rows before{scan.run(all), all, all};
                const Rows after = scan.near(before, rank, true);
                const Rows ofMore = scan.near(before, rank, true, rank + 1);
                const auto counts = scan.run(after.limits);
                for (int64_t q = 0; q < c.numQueries; ++q) {
                    EXPECT_EQ(after.counts[q], 0u);
                    if (n < rank || n > int64_t(kMostSecondEntries)) {
                        EXPECT_EQ(after.limits[q], INFINITY);
                        continue;
                    }
                    EXPECT_LE(counts[q], rank + 32);
                    EXPECT_GE(counts[q], rank);
                    uint32_t belonging = 0;
                    for (int64_t v = 0; v < n; ++v) {
                        belonging += float(scan.key(q, v)) <= after.complete[q];
                    }
                    EXPECT_LE(belonging, counts[q]);
                    // All that the rank asks for: where the sample has the
                    // nearest of all, none less proves them.
                    EXPECT_GE(belonging, rank) << "query " << q;
                    // Of a larger k the key itself is the limit.
                    EXPECT_LT(ofMore.limits[q], after.limits[q]);
                    uint32_t within = 0;
                    for (int64_t v = 0; v < n; ++v) {
                        within += float(scan.key(q, v)) <= ofMore.complete[q];
                    }
                    EXPECT_GE(within + 8, rank);
                }
            }
        }
    }
}

/// Rows whose components are all rounded to the greater size, by nearly half of
/// the last place: every key is less than the canonical distance, by far more
/// than such errors are mostly.
TEST_F(NearLists, RoundedAlike) {
    std::mt19937 random(3);
    const auto rowsOf = [&](int64_t rows, int d, float more) {
        std::vector<float> out(size_t(rows) * d);
        for (size_t i = 0; i < out.size(); ++i) {
            const float size = 1 + float(random() % 200) * 0x1p-10f + more;
            out[i] = i % d % 3 == 0 ? -size : size;
        }
        return out;
    };
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (uint32_t rank : {1, 2, 9}) {
            const TensorCase c = of(metric, 33, 500, 270);
            Scan scan(
                    c,
                    uint32_t(c.n),
                    rowsOf(c.n, c.d, 0x1p-11f * (1 + 0x1p-6f)),
                    rowsOf(c.numQueries, c.d, 0));
            const std::vector<float> all(c.numQueries, INFINITY);
            const Rows before{scan.run(all), all, all};
            const Rows limits = scan.near(before, rank, true);
            const Rows lists = scan.near(
                    {scan.run(limits.limits), limits.limits, limits.complete},
                    rank,
                    false);
            const auto columns = scan.columns.download();
            for (int64_t q = 0; q < c.numQueries; ++q) {
                ASSERT_LT(limits.limits[q], INFINITY);
                for (float complete : {limits.complete[q], lists.complete[q]}) {
                    uint32_t belonging = 0;
                    for (int64_t v = 0; v < c.n; ++v) {
                        belonging += float(scan.key(q, v)) <= complete;
                    }
                    EXPECT_GE(belonging, rank)
                            << c.name() << " rank=" << rank << " query " << q;
                }
                // And what belongs is in the list.
                std::vector<bool> in(c.n);
                for (uint32_t i = 0; i < lists.counts[q]; ++i) {
                    in[uint32_t(columns[q * scan.room + i])] = true;
                }
                for (int64_t v = 0; v < c.n; ++v) {
                    EXPECT_TRUE(
                            in[v] || float(scan.key(q, v)) > lists.complete[q])
                            << c.name() << " query " << q << " vector " << v;
                }
            }
        }
    }
}

/// Few pairs, for tools that watch each access.
TEST_F(NearLists, SmallScan) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        expectLists(of(metric, 20, 300, 260), 10);
    }
}

TEST_F(NearLists, ArgumentsAreChecked) {
    EXPECT_THROW(launchNearLists(Metric::L1, {}, nullptr), Error);
    EXPECT_THROW(launchNearLimits(Metric::Cosine, {}, nullptr), Error);
    EXPECT_THROW(launchKeyEntries(Metric::Cosine, {}, nullptr), Error);
}

} // namespace
} // namespace faiss_bits::test
