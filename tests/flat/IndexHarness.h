#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/FaissException.h>
#include <gtest/gtest.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/flat/HostHarness.h"

/// What the tests of the GPU index classes share.
namespace faiss_bits::test {

using gpu::GpuIndexBitsFlat;
using gpu::GpuIndexBitsFlatConfig;
using gpu::GpuIndexBitsFlatIP;
using gpu::GpuIndexBitsFlatL2;

/// Resources for many tests. They hold 1.5 GiB, so there is one of them; it
/// stays until the process ends, since CUDA may be gone before statics are.
inline faiss::gpu::StandardGpuResources* sharedResources() {
    static auto* resources = [] {
        auto* created = new faiss::gpu::StandardGpuResources();
        created->setPinnedMemory(0);
        return created;
    }();
    return resources;
}

/// Resources of a test's own, small.
struct OwnResources : faiss::gpu::StandardGpuResources {
    OwnResources() {
        setPinnedMemory(0);
        setTempMemory(size_t(256) << 20);
    }
};

/// Resources of the usual kind whose allocations can be made to fail.
class FailingResources : public faiss::gpu::StandardGpuResourcesImpl {
   public:
    FailingResources() {
        setPinnedMemory(0);
        setTempMemory(size_t(64) << 20);
    }

    /// The allocation after `count` more fails, and all behind it.
    void failAfter(int count) {
        left_ = count;
    }
    void failNever() {
        left_.reset();
    }

    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        if (left_ && request.size > 0 && (*left_)-- <= 0) {
            throw faiss::FaissException("no memory, says the test");
        }
        return StandardGpuResourcesImpl::allocMemory(request);
    }

   private:
    std::optional<int> left_;
};

struct FlatCase {
    faiss::MetricType metric = faiss::METRIC_L2;
    DataType storage = DataType::Float32;
    int64_t n = 1000;
    int d = 32;
    int64_t q = 20;
    Fill fill = Fill::Uniform;
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const FlatCase& c) {
    return out << (c.metric == faiss::METRIC_L2 ? "L2" : "IP")
               << (c.storage == DataType::Float32           ? " float32"
                           : c.storage == DataType::Float16 ? " float16"
                                                            : " bfloat16")
               << " n=" << c.n << " d=" << c.d << " q=" << c.q
               << " seed=" << c.seed;
}

inline constexpr DataType kStorages[] = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

inline GpuIndexBitsFlatConfig configOf(DataType storage) {
    GpuIndexBitsFlatConfig config;
    config.useFloat16 = storage == DataType::Float16;
    config.useBFloat16 = storage == DataType::BFloat16;
    return config;
}

/// Every metric and storage.
inline std::vector<FlatCase> kindsOf(FlatCase c) {
    std::vector<FlatCase> kinds;
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (DataType storage : kStorages) {
            c.metric = metric;
            c.storage = storage;
            kinds.push_back(c);
        }
    }
    return kinds;
}

inline SearchOutput searchOnDevice(
        const faiss::Index& index,
        const std::vector<float>& queries,
        int64_t k) {
    const int64_t q = int64_t(queries.size()) / index.d;
    const DeviceBuffer<float> x(queries);
    const DeviceBuffer<float> distances(q * k);
    const DeviceBuffer<int64_t> labels(q * k);
    index.search(q, x.data(), k, distances.data(), labels.data());
    return {distances.download(), labels.download()};
}

/// Vectors, queries, and what the oracle says of them.
struct FlatData {
    explicit FlatData(const FlatCase& c)
            : c(c),
              vectors(makeVectors(c.n, c.d, c.seed, c.fill)),
              queries(makeVectors(c.q, c.d, c.seed + 1000, c.fill)) {}

    bool isIP() const {
        return c.metric == faiss::METRIC_INNER_PRODUCT;
    }

    DataType type() const {
        return c.storage;
    }

    std::unique_ptr<GpuIndexBitsFlat> makeIndex(
            faiss::gpu::GpuResourcesProvider* provider =
                    sharedResources()) const {
        auto index = std::make_unique<GpuIndexBitsFlat>(
                provider, c.d, c.metric, configOf(c.storage));
        index->add(c.n, vectors.data());
        return index;
    }

    /// Every query's true distances, of the values as they are stored.
    const std::vector<std::vector<double>>& truth() const {
        if (truth_.empty()) {
            stored_ = vectors;
            asked_ = queries;
            roundAllTo(type(), stored_);
            for (int64_t i = 0; i < c.q; ++i) {
                truth_.push_back(distancesToAll(
                        asked_.data() + i * c.d,
                        stored_.data(),
                        c.n,
                        c.d,
                        isIP()));
            }
        }
        return truth_;
    }

    /// Canonical results, bit for bit, of vectors as they are stored and of
    /// queries as they are.
    void expectNearest(const SearchOutput& out, int64_t k) const {
        truth();
        ASSERT_EQ(out.labels.size(), size_t(c.q * k));
        for (int64_t i = 0; i < c.q; ++i) {
            ASSERT_TRUE(isCanonical(
                    canonicalTopK(
                            isIP() ? Metric::InnerProduct : Metric::L2,
                            2,
                            queries.data() + i * c.d,
                            stored_.data(),
                            c.n,
                            c.d,
                            k),
                    isIP(),
                    out.distances.data() + i * k,
                    out.labels.data() + i * k,
                    k))
                    << c << " k=" << k << " query " << i;
        }
    }

    /// Results within the rounding of fp32 arithmetic, of others.
    void expectWithinRounding(const SearchOutput& out, int64_t k) const {
        truth();
        ASSERT_EQ(out.labels.size(), size_t(c.q * k));
        for (int64_t i = 0; i < c.q; ++i) {
            NeighbourCheck check;
            check.distances = &truth()[i];
            check.largest = isIP();
            check.returnsNan = false;
            check.error = [&](int64_t id) {
                return fp32DistanceError(
                        asked_.data() + i * c.d,
                        stored_.data() + id * c.d,
                        c.d,
                        isIP());
            };
            ASSERT_TRUE(isNearest(
                    check,
                    out.distances.data() + i * k,
                    out.labels.data() + i * k,
                    k))
                    << c << " k=" << k << " query " << i;
        }
    }

    /// Results that are the oracle's to the last bit (Fill::Integers, and
    /// vectors or queries that a test has changed to NaN, whose distances are
    /// never returned).
    void expectExact(const SearchOutput& out, int64_t k) const {
        truth();
        ASSERT_EQ(out.labels.size(), size_t(c.q * k));
        const float sentinel = isIP() ? -std::numeric_limits<float>::max()
                                      : std::numeric_limits<float>::max();
        for (int64_t i = 0; i < c.q; ++i) {
            std::vector<Ranked> all;
            for (int64_t id = 0; id < c.n; ++id) {
                if (!std::isnan(truth()[i][id])) { // never returned
                    all.push_back({truth()[i][id], id});
                }
            }
            const auto best = topK(std::move(all), k, isIP());
            for (int64_t j = 0; j < k; ++j) {
                const bool there = j < int64_t(best.size());
                const int64_t id = there ? best[j].id : -1;
                const float key = there ? float(best[j].key) : sentinel;
                ASSERT_EQ(out.labels[i * k + j], id)
                        << c << " k=" << k << " query " << i << " place " << j
                        << ", distance " << out.distances[i * k + j]
                        << ", expected " << key;
                const float got = out.distances[i * k + j];
                ASSERT_EQ(got, key)
                        << c << " k=" << k << " query " << i << " place " << j;
            }
        }
    }

    FlatCase c;
    std::vector<float> vectors; ///< [n, d]
    std::vector<float> queries; ///< [q, d]

   private:
    mutable std::vector<float> stored_;
    mutable std::vector<float> asked_;
    mutable std::vector<std::vector<double>> truth_;
};

} // namespace faiss_bits::test
