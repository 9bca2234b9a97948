#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss/gpu/GpuIndexFlat.h>

#include "tests/flat/IndexHarness.h"
#include "tests/flat/suite/FlatKind.h"

namespace faiss_bits::test {

/// GpuIndexBitsFlat (FlatKind.h).
struct GpuFlatKind {
    static constexpr const char* kDimensions = "dims";
    static constexpr const char* kOutput = "out";
    static constexpr const char* kCount = "n";
    static constexpr const char* kResidualKey = "keys";
    static constexpr float kEmptyComponent = 0;

    using Index = GpuIndexBitsFlat;
    using Case = FlatCase;
    using Data = FlatData;
    using Fixture = GpuTest;

    static std::vector<Case> casesOf(const Case& c) {
        return kindsOf(c);
    }

    static bool roundsIntegers(const Case&) {
        return false;
    }

    static int64_t fewer(int64_t n) {
        return n;
    }

    static SearchOutput searchInPlace(
            const faiss::Index& index,
            const std::vector<float>& queries,
            int64_t k) {
        return searchOnDevice(index, queries, k);
    }

    template <class Call>
    static void forEveryRun(const Call& call) {
        for (int run = 0; run < 3; ++run) {
            call("run=" + std::to_string(run));
        }
    }

    static std::unique_ptr<faiss::Index> faissIndex(const Data& data) {
        faiss::gpu::GpuIndexFlatConfig config;
        config.useFloat16 = data.c.storage == DataType::Float16;
        auto index = std::make_unique<faiss::gpu::GpuIndexFlat>(
                sharedResources(), data.c.d, data.c.metric, config);
        auto vectors = data.vectors;
        if (data.c.storage == DataType::BFloat16) { // FAISS's has float32
            roundAllTo(data.c.storage, vectors);
        }
        index->add(data.c.n, vectors.data());
        return index;
    }

    /// FAISS squares float16 components in float16.
    static double agreement(const Case& c) {
        return c.storage == DataType::Float16 ? 0.9 : 0.99;
    }

    static std::unique_ptr<Index> make(int d, faiss::MetricType metric) {
        return std::make_unique<Index>(sharedResources(), d, metric);
    }

    static std::unique_ptr<Index> copyOf(const faiss::IndexFlat& index) {
        return std::make_unique<Index>(sharedResources(), &index);
    }

    /// One more than there may be, by FAISS's counts or by ours.
    static idx_t tooManyVectors() {
        return FAISS_BITS_FAISS_IS_64BIT ? (idx_t(1) << 37) - (1 << 11) + 1
                                         : idx_t(1) << 31;
    }

    static std::vector<idx_t> tooLargeK() {
        return {idx_t(1) << 31, idx_t(1) << 32};
    }
};

} // namespace faiss_bits::test
