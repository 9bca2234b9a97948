#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/many/MergeLists.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

/// Lists of sorted results and what their merge has to be: a sort of all.
namespace faiss_bits::test {

enum class MergeValues {
    Random,
    Few,       ///< mostly ties
    Equal,     ///< all the same
    Infinite,  ///< many infinities, and FLT_MAX itself
    Separated, ///< list after list: the first has all of the best
    Backwards, ///< the last has
    Zeros,     ///< -0 and +0
};

constexpr MergeValues kMergeValues[] = {
        MergeValues::Random,
        MergeValues::Few,
        MergeValues::Equal,
        MergeValues::Infinite,
        MergeValues::Separated,
        MergeValues::Backwards,
        MergeValues::Zeros};

struct MergeCase {
    std::vector<int64_t> widths;
    int64_t rows = 3;
    int64_t k = 10;
    bool largest = false;
    bool idsAscend = true;
    MergeValues values = MergeValues::Random;
    /// Part of the places that are empty in the lists' ends.
    double missing = 0;
};

inline std::ostream& operator<<(std::ostream& out, const MergeCase& c) {
    out << "widths";
    for (int64_t width : c.widths) {
        out << ' ' << width;
    }
    return out << " rows=" << c.rows << " k=" << c.k << " largest=" << c.largest
               << " idsAscend=" << c.idsAscend << " values=" << int(c.values)
               << " missing=" << c.missing;
}

struct MergeFound {
    float distance = 0;
    int64_t id = 0;
    bool isLastOfCut = false;
};

inline float valueOf(const MergeCase& c, size_t list, std::mt19937& random) {
    const float unit = float(random() % 1000003) / 1000003.f;
    const float infinity = std::numeric_limits<float>::infinity();
    switch (c.values) {
        case MergeValues::Random:
            return unit - 0.5f;
        case MergeValues::Few:
            return float(random() % 5) - 2;
        case MergeValues::Equal:
            return 1.5f;
        case MergeValues::Infinite: {
            const float some[] = {
                    infinity,
                    -infinity,
                    std::numeric_limits<float>::max(),
                    -std::numeric_limits<float>::max(),
                    unit};
            return some[random() % 5];
        }
        case MergeValues::Separated:
            return float(list) + unit;
        case MergeValues::Backwards:
            return float(c.widths.size() - list) + unit;
        case MergeValues::Zeros:
            return random() % 2 ? 0.f : -0.f;
    }
    return 0;
}

/// What comes first, by its meaning: in float64, equal ones by the lower id.
inline bool isBefore(const MergeFound& a, const MergeFound& b, bool largest) {
    const double x = a.distance;
    const double y = b.distance;
    if (x != y) {
        return largest ? x > y : x < y;
    }
    return a.id < b.id;
}

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
    std::mt19937 random(
            unsigned(c.k * 31 + c.rows + c.widths.size() * 7 + int(c.values)));
    const size_t numLists = c.widths.size();
    std::vector<std::vector<MergeFound>> rows(c.rows); // all that there is
    std::vector<DeviceBuffer<float>> distances;
    std::vector<DeviceBuffer<int64_t>> ids;
    MergeProblem problem;
    for (size_t list = 0; list < numLists; ++list) {
        const int64_t width = c.widths[list];
        std::vector<float> d(c.rows * width, std::nanf("")); // not to be read
        std::vector<int64_t> i(c.rows * width, -1);
        const int64_t offset = c.idsAscend ? int64_t(list) * 1000000 : 0;
        for (int64_t row = 0; row < c.rows; ++row) {
            int64_t there = width;
            if (c.missing > 0 && random() % 2) {
                there =
                        int64_t(double(width) *
                                (1 - c.missing * (random() % 100) / 99));
            }
            std::vector<MergeFound> found;
            for (int64_t j = 0; j < there; ++j) {
                // Distinct over all lists, whether they ascend or not.
                const int64_t id = c.idsAscend
                        ? j * 3
                        : int64_t(j * numLists + (list + j) % numLists);
                found.push_back({valueOf(c, list, random), id, false});
            }
            std::sort(found.begin(), found.end(), [&](auto& a, auto& b) {
                return isBefore(a, b, c.largest);
            });
            for (int64_t j = 0; j < there; ++j) {
                d[row * width + j] = found[j].distance;
                i[row * width + j] = found[j].id;
                // Every second list is cut.
                rows[row].push_back(
                        {found[j].distance,
                         found[j].id + offset,
                         list % 2 == 1 && j + 1 == width});
            }
        }
        distances.emplace_back(d);
        ids.emplace_back(i);
        problem.lists.push_back(
                {distances.back().data(),
                 ids.back().data(),
                 width,
                 offset,
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
        std::sort(rows[row].begin(), rows[row].end(), [&](auto& a, auto& b) {
            return isBefore(a, b, c.largest);
        });
        limits.push_back(limitOf(c, rows[row], row));
    }
    const DeviceBuffer<float> onDevice(limits);
    problem.limits = areLimited ? onDevice.data() : nullptr;
    const TestStream stream;
    runMergeLists(problem, stream);
    const auto gotIncomplete = incomplete.download();
    const auto gotDistances = outDistances.download();
    const auto gotIds = outIds.download();

    const float most = std::numeric_limits<float>::max();
    for (int64_t row = 0; row < c.rows; ++row) {
        const auto& all = rows[row];
        for (int64_t j = 0; j < c.k; ++j) {
            const MergeFound want = j < int64_t(all.size())
                    ? all[j]
                    : MergeFound{c.largest ? -most : most, -1, false};
            ASSERT_EQ(gotIds[row * c.k + j], want.id)
                    << "row " << row << " place " << j;
            ASSERT_TRUE(sameBits(gotDistances[row * c.k + j], want.distance))
                    << "row " << row << " place " << j;
        }
        ASSERT_EQ(
                bool(gotIncomplete[row]),
                isIncomplete(c, all, areLimited ? &limits[row] : nullptr))
                << "row " << row << " limit " << limits[row];
    }
}

inline void checkMerge(const MergeCase& c) {
    checkMerge(c, false);
    checkMerge(c, true);
}

/// Every kind of values and order of one shape.
inline void checkKinds(MergeCase c) {
    for (MergeValues values : kMergeValues) {
        for (bool largest : {false, true}) {
            for (bool idsAscend : {false, true}) {
                for (double missing : {0.0, 1.0}) {
                    c.values = values;
                    c.largest = largest;
                    c.idsAscend = idsAscend;
                    c.missing = missing;
                    checkMerge(c);
                }
            }
        }
    }
}

} // namespace faiss_bits::test
