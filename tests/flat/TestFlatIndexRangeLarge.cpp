/// Range searches with so many results that these wait on the device until
/// their places on the host are known. Against float64.

#include <limits>
#include <memory>

#include "tests/flat/IndexRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatIndexRangeLarge : public GpuTest {};

constexpr int kDims = 2;

/// What is nearer than the radius, by ascending ids: integers, so that float64
/// and float32 agree.
Wanted wantedOf(
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        double radius) {
    Wanted wanted;
    for (size_t q = 0; q < queries.size(); q += kDims) {
        for (size_t v = 0; v < vectors.size(); v += kDims) {
            const double dx = double(queries[q]) - double(vectors[v]);
            const double dy = double(queries[q + 1]) - double(vectors[v + 1]);
            if (dx * dx + dy * dy < radius) {
                wanted.labels.push_back(int64_t(v / kDims));
                wanted.distances.push_back(float(dx * dx + dy * dy));
            }
        }
        wanted.lims.push_back(wanted.labels.size());
    }
    return wanted;
}

/// Vectors and their queries, and an index of them.
struct LargeCase {
    LargeCase(int64_t n, int64_t q, size_t pinned, size_t temporary)
            : vectors(makeVectors(n, kDims, 1, Fill::Integers)),
              queries(makeVectors(q, kDims, 2, Fill::Integers)) {
        resources.setPinnedMemory(pinned);
        resources.setTempMemory(temporary);
        index = std::make_unique<GpuIndexBitsFlat>(
                &resources, kDims, faiss::METRIC_L2);
        index->add(n, vectors.data());
    }

    void expectRange(float radius, faiss::RangeSearchResult& result) const {
        const Wanted wanted = wantedOf(vectors, queries, radius);
        index->range_search(
                int64_t(result.nq), queries.data(), radius, &result);
        FlatCase c;
        c.n = int64_t(vectors.size()) / kDims;
        c.q = int64_t(result.nq);
        c.d = kDims;
        expectSame(wanted, result, c);
    }

    faiss::gpu::StandardGpuResources resources;
    std::vector<float> vectors;
    std::vector<float> queries;
    std::unique_ptr<GpuIndexBitsFlat> index;
};

constexpr float kAll = std::numeric_limits<float>::infinity();
constexpr size_t kMiB = size_t(1) << 20;

/// 12 bytes each: one less than 4 MiB, and one more.
TEST_F(FlatIndexRangeLarge, BothSidesOfTheLeastThatWaits) {
    static_assert(25 * 13981 * 12 < 4 * kMiB && 2 * 174763 * 12 > 4 * kMiB);
    for (const auto& [q, n] :
         {std::pair<int64_t, int64_t>{25, 13981},
          std::pair<int64_t, int64_t>{2, 174763}}) {
        const LargeCase c(n, q, 64 * kMiB, 256 * kMiB);
        faiss::RangeSearchResult result(q);
        c.expectRange(kAll, result);
    }
}

/// Much pinned memory, for shorter pieces, too little, and none.
TEST_F(FlatIndexRangeLarge, PinnedMemoryOfAnySize) {
    for (const size_t pinned : {64 * kMiB, 3 * kMiB, kMiB / 2, size_t(0)}) {
        const LargeCase c(30011, 61, pinned, 256 * kMiB);
        for (const float radius : {kAll, 40.f, 1.f}) {
            SCOPED_TRACE(
                    ::testing::Message() << pinned << ", radius " << radius);
            faiss::RangeSearchResult result(61);
            c.expectRange(radius, result);
            faiss::RangeSearchResult again(61);
            c.expectRange(radius, again);
        }
    }
}

/// Little temporary memory: several parts, of which some may be few.
TEST_F(FlatIndexRangeLarge, SeveralParts) {
    const LargeCase c(50021, 400, 64 * kMiB, kMiB);
    for (const float radius : {kAll, 20.f}) {
        faiss::RangeSearchResult result(400);
        c.expectRange(radius, result);
    }
}

/// Arrays of a class that allocates for itself.
TEST_F(FlatIndexRangeLarge, ResultsOfAnotherClass) {
    struct OfAnother : faiss::RangeSearchResult {
        using RangeSearchResult::RangeSearchResult;
        void do_allocation() override {
            ++allocations;
            RangeSearchResult::do_allocation();
        }
        int allocations = 0;
    };
    const LargeCase c(30011, 61, 64 * kMiB, 256 * kMiB);
    OfAnother result(61);
    c.expectRange(kAll, result);
    EXPECT_EQ(result.allocations, 1);
}

} // namespace
} // namespace faiss_bits::test
