#pragma once

#include "kernels/many/MergeLists.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/many/MergeData.h"

/// The merge on the device.
namespace faiss_bits::test {

/// A limit of a row, whose results are in order: before all, of the k-th and
/// those beside it, none.
inline float limitOf(
        const MergeCase& c,
        const std::vector<MergeFound>& all,
        int64_t row) {
    const float infinity = std::numeric_limits<float>::infinity();
    const auto beside = [&](int64_t at, float to) {
        at = std::min<int64_t>(at, int64_t(all.size()) - 1);
        return at < 0 ? 3.f : std::nextafter(all[at].distance, to);
    };
    switch ((row + c.k + int64_t(c.values)) % 6) {
        case 0:
            return c.largest ? -infinity : infinity;
        case 1:
            return std::nanf("");
        case 2:
            return beside(c.k - 1, infinity);
        case 3:
            return beside(c.k - 1, -infinity);
        case 4:
            return all.empty()
                    ? 0
                    : all[std::min<size_t>(c.k, all.size()) - 1].distance;
        default:
            return beside(0, c.largest ? infinity : -infinity);
    }
}

/// By meaning: something may be missing among the k best.
inline bool isIncomplete(
        const MergeCase& c,
        const std::vector<MergeFound>& all,
        const float* limit) {
    const size_t best = std::min<size_t>(all.size(), c.k);
    for (size_t i = 0; i < best; ++i) {
        if (all[i].isLastOfCut) {
            return true;
        }
    }
    if (!limit || !std::isfinite(*limit)) {
        return false;
    }
    if (best < size_t(c.k)) {
        return true;
    }
    const float last = all[c.k - 1].distance;
    return c.largest ? last < *limit : last > *limit;
}

inline void checkMerge(const MergeCase& c, bool areLimited) {
    SCOPED_TRACE(::testing::Message() << c << " limits " << areLimited);
    const MergeData data(c);
    std::vector<DeviceBuffer<float>> distances;
    std::vector<DeviceBuffer<int64_t>> ids;
    MergeProblem problem;
    for (size_t list = 0; list < c.widths.size(); ++list) {
        distances.emplace_back(data.distances[list]);
        ids.emplace_back(data.ids[list]);
        problem.lists.push_back(
                {distances.back().data(),
                 ids.back().data(),
                 c.widths[list],
                 data.offsets[list],
                 list % 2 == 1});
    }
    DeviceBuffer<float> outDistances(c.rows * c.k);
    DeviceBuffer<int64_t> outIds(c.rows * c.k);
    DeviceBuffer<uint8_t> incomplete(c.rows, 0);
    problem.rows = c.rows;
    problem.k = c.k;
    problem.largest = c.largest;
    problem.idsAscend = c.idsAscend;
    problem.outDistances = outDistances.data();
    problem.outIds = outIds.data();
    problem.incomplete = incomplete.data();
    std::vector<float> limits;
    for (int64_t row = 0; row < c.rows; ++row) {
        limits.push_back(limitOf(c, data.rows[row], row));
    }
    const DeviceBuffer<float> onDevice(limits);
    problem.limits = areLimited ? onDevice.data() : nullptr;
    const TestStream stream;
    runMergeLists(problem, stream);
    const auto gotIncomplete = incomplete.download();
    expectMerged(c, data, outDistances.download(), outIds.download());
    for (int64_t row = 0; row < c.rows; ++row) {
        ASSERT_EQ(
                bool(gotIncomplete[row]),
                isIncomplete(
                        c, data.rows[row], areLimited ? &limits[row] : nullptr))
                << "row " << row << " limit " << limits[row];
    }
}

inline void checkMerge(const MergeCase& c) {
    checkMerge(c, false);
    checkMerge(c, true);
}

/// Every kind of values and order of one shape.
inline void checkKinds(const MergeCase& c) {
    forKindsOf(c, [](const MergeCase& kind) { checkMerge(kind); });
}

} // namespace faiss_bits::test
