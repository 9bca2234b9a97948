#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <omp.h>

#include <faiss/IndexFlat.h>

#include "tests/flat/FusedHarness.h"
#include "tests/flat/suite/FlatKind.h"

namespace faiss_bits::test {

/// With GpuTest's hook.
class CpuFlatTest : public ::testing::Test {
   protected:
    virtual void prepare() {}

    void SetUp() final {
        prepare();
    }
};

/// IndexFusedFlat (FlatKind.h).
struct CpuFlatKind {
    static constexpr const char* kDimensions = "d";
    static constexpr const char* kOutput = "recons";
    static constexpr const char* kCount = "ni";
    static constexpr const char* kResidualKey = "key";
    static constexpr float kEmptyComponent =
            std::numeric_limits<float>::quiet_NaN();

    using Index = IndexFusedFlat;
    using Case = FusedCase;
    using Data = FusedData;
    using Fixture = CpuFlatTest;

    static std::vector<Case> casesOf(const Case& c) {
        return metricsOf(c);
    }

    static bool roundsIntegers(const Case& c) {
        return c.metric == faiss::METRIC_Lp;
    }

    /// The reference takes its time over powers.
    static int64_t fewer(int64_t n) {
        return n / 4;
    }

    static SearchOutput searchInPlace(
            const faiss::Index& index,
            const std::vector<float>& queries,
            int64_t k) {
        return searchOnHost(index, queries, k);
    }

    /// Whatever the number of threads.
    template <class Call>
    static void forEveryRun(const Call& call) {
        const int before = omp_get_max_threads();
        for (int threads : {1, 2, 3, 7}) {
            omp_set_num_threads(threads);
            call("threads=" + std::to_string(threads));
        }
        omp_set_num_threads(before);
    }

    static std::unique_ptr<faiss::Index> faissIndex(const Data& data) {
        auto index =
                std::make_unique<faiss::IndexFlat>(data.c.d, data.c.metric);
        index->metric_arg = data.c.metricArg;
        index->add(data.c.n, data.vectors.data());
        return index;
    }

    static double agreement(const Case&) {
        return 0.99;
    }

    static std::unique_ptr<Index> make(int d, faiss::MetricType metric) {
        return std::make_unique<Index>(d, metric);
    }

    static std::unique_ptr<Index> copyOf(const faiss::IndexFlat& index) {
        return std::make_unique<Index>(index);
    }

    static idx_t tooManyVectors() {
        return idx_t(1) << 31;
    }

    static std::vector<idx_t> tooLargeK() {
        return {};
    }
};

} // namespace faiss_bits::test
