#pragma once

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"
#include "tests/ivf/IvfHarness.h"

/// What the tests of range searches of inverted lists share.
namespace faiss_bits::test {

/// What is in range of a query's lists, in their order, and in theirs.
inline std::vector<Ranked> inRange(
        const IvfData& data,
        int64_t query,
        int nprobe,
        float radius) {
    std::vector<Ranked> found;
    const bool isIP = data.c.metric == faiss::METRIC_INNER_PRODUCT;
    for (int64_t list : data.probesOf(query, nprobe)) {
        const auto* vectors = reinterpret_cast<const float*>(
                data.cpu->invlists->get_codes(list));
        for (size_t i = 0; i < data.cpu->invlists->list_size(list); ++i) {
            if (data.selects &&
                !data.selects(data.selectorIdOf(list, int64_t(i)))) {
                continue;
            }
            const float distance = canonicalDistance(
                    data.metric(),
                    0,
                    data.queries.data() + query * data.c.d,
                    vectors + i * data.c.d,
                    data.c.d);
            if (isIP ? distance > radius : distance < radius) {
                found.push_back(
                        {double(distance),
                         data.selectorIdOf(list, int64_t(i))});
            }
        }
    }
    return found;
}

/// The results of a range search, as rows of a sparse matrix.
struct RangeRows {
    std::vector<size_t> lims;
    std::vector<float> distances;
    std::vector<int64_t> labels;

    bool operator==(const RangeRows&) const = default;
};

inline RangeRows rowsOf(const faiss::RangeSearchResult& result) {
    const size_t total = result.lims[result.nq];
    return {{result.lims, result.lims + result.nq + 1},
            {result.distances, result.distances + total},
            {result.labels, result.labels + total}};
}

inline RangeRows rangeOnHost(
        const faiss::Index& index,
        int64_t n,
        const float* x,
        float radius,
        const faiss::SearchParameters* params = nullptr) {
    faiss::RangeSearchResult result(n);
    index.range_search(n, x, radius, &result, params);
    return rowsOf(result);
}

/// rangeSearchOnDevice() of whichever of our classes it is. x may lie on the
/// host.
inline void searchRangeOnDevice(
        const faiss::Index& index,
        int64_t n,
        const float* x,
        float radius,
        gpu::GpuRangeResult& result,
        const faiss::SearchParameters* params = nullptr) {
    const auto searchAs = [&](const auto* one) {
        if (one) {
            one->rangeSearchOnDevice(n, x, radius, result, params);
        }
        return one != nullptr;
    };
    ASSERT_TRUE(
            searchAs(dynamic_cast<const GpuIndexBitsIVFFlat*>(&index)) ||
            searchAs(dynamic_cast<const gpu::GpuIndexBitsIVFPQ*>(&index)) ||
            searchAs(dynamic_cast<const gpu::GpuIndexBitsIVFScalarQuantizer*>(
                    &index)));
}

/// Its results. They are there when the search returns, on any stream.
inline RangeRows rowsOf(const gpu::GpuRangeResult& result) {
    const int64_t total = result.lims.back();
    const DeviceBuffer<float> distances(total);
    const DeviceBuffer<int64_t> labels(total);
    result.copyTo(distances.data(), labels.data(), nullptr);
    return {{result.lims.begin(), result.lims.end()},
            distances.download(),
            labels.download()};
}

/// Both forms, which find the same. Returns how many were found.
inline size_t expectRange(
        const IvfData& data,
        const faiss::Index& index,
        float radius,
        int nprobe,
        faiss::IDSelector* selector = nullptr) {
    faiss::SearchParametersIVF params;
    params.nprobe = nprobe;
    params.sel = selector;
    RangeRows want;
    want.lims.push_back(0);
    for (int64_t i = 0; i < data.c.q; ++i) {
        for (const Ranked& one : inRange(data, i, nprobe, radius)) {
            want.distances.push_back(float(one.key));
            want.labels.push_back(one.id);
        }
        want.lims.push_back(want.labels.size());
    }
    const auto expectSame = [&](const RangeRows& found, const char* form) {
        EXPECT_EQ(found.lims, want.lims) << form << " of " << data.c;
        EXPECT_EQ(found.distances, want.distances) << form << " of " << data.c;
        EXPECT_EQ(found.labels, want.labels) << form << " of " << data.c;
    };
    expectSame(
            rangeOnHost(index, data.c.q, data.queries.data(), radius, &params),
            "host");
    const DeviceBuffer<float> x(data.queries);
    gpu::GpuRangeResult result;
    searchRangeOnDevice(index, data.c.q, x.data(), radius, result, &params);
    expectSame(rowsOf(result), "device");
    return want.labels.size();
}

/// A radius that is the distance of some vector, and so leaves it out.
inline float someRadius(const IvfData& data, double part) {
    std::vector<float> all;
    for (int64_t i = 0; i < data.c.n; ++i) {
        all.push_back(canonicalDistance(
                data.metric(),
                0,
                data.queries.data(),
                data.vectors.data() + i * data.c.d,
                data.c.d));
    }
    std::sort(all.begin(), all.end());
    if (data.c.metric == faiss::METRIC_INNER_PRODUCT) {
        std::reverse(all.begin(), all.end());
    }
    return all[size_t(part * double(all.size() - 1))];
}

/// The same of the vectors in the lists, decoded where they are codes.
inline float listRadius(const IvfData& oracle, double part) {
    std::vector<float> all;
    for (int l = 0; l < oracle.c.nlist; ++l) {
        const auto* vectors = reinterpret_cast<const float*>(
                oracle.cpu->invlists->get_codes(l));
        for (size_t i = 0; i < oracle.cpu->invlists->list_size(l); ++i) {
            all.push_back(canonicalDistance(
                    oracle.metric(),
                    0,
                    oracle.queries.data(),
                    vectors + i * oracle.c.d,
                    oracle.c.d));
        }
    }
    std::sort(all.begin(), all.end());
    return all[size_t(part * double(all.size() - 1))];
}

} // namespace faiss_bits::test
