#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/Compare.h"

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

/// Lists and all that is in them.
struct MergeData {
    explicit MergeData(const MergeCase& c) : rows(c.rows) {
        std::mt19937 random(unsigned(
                c.k * 31 + c.rows + c.widths.size() * 7 + int(c.values)));
        for (size_t list = 0; list < c.widths.size(); ++list) {
            addList(c, list, random);
        }
        for (auto& row : rows) {
            sort(row, c.largest);
        }
    }

    std::vector<std::vector<float>> distances; // [rows, width] of each list
    std::vector<std::vector<int64_t>> ids;     // likewise, without offsets
    std::vector<int64_t> offsets;
    /// Every row's, in order, ids with offsets.
    std::vector<std::vector<MergeFound>> rows;

   private:
    static void sort(std::vector<MergeFound>& found, bool largest) {
        std::sort(found.begin(), found.end(), [&](auto& a, auto& b) {
            return isBefore(a, b, largest);
        });
    }

    void addList(const MergeCase& c, size_t list, std::mt19937& random) {
        const int64_t width = c.widths[list];
        const int64_t numLists = int64_t(c.widths.size());
        const int64_t offset = c.idsAscend ? int64_t(list) * 1000000 : 0;
        std::vector<float> d(c.rows * width, std::nanf("")); // not to be read
        std::vector<int64_t> i(c.rows * width, -1);
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
                        : j * numLists + (int64_t(list) + j) % numLists;
                found.push_back({valueOf(c, list, random), id, false});
            }
            sort(found, c.largest);
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
        distances.push_back(std::move(d));
        ids.push_back(std::move(i));
        offsets.push_back(offset);
    }
};

/// Results [rows, k] are the best of all.
inline void expectMerged(
        const MergeCase& c,
        const MergeData& data,
        const std::vector<float>& distances,
        const std::vector<int64_t>& ids) {
    const float most = std::numeric_limits<float>::max();
    for (int64_t row = 0; row < c.rows; ++row) {
        const auto& all = data.rows[row];
        for (int64_t j = 0; j < c.k; ++j) {
            const MergeFound want = j < int64_t(all.size())
                    ? all[j]
                    : MergeFound{c.largest ? -most : most, -1, false};
            ASSERT_EQ(ids[row * c.k + j], want.id)
                    << "row " << row << " place " << j;
            ASSERT_TRUE(sameBits(distances[row * c.k + j], want.distance))
                    << "row " << row << " place " << j;
        }
    }
}

/// Calls check(case) for every kind of values and order of one shape.
template <class Check>
void forKindsOf(MergeCase c, const Check& check) {
    for (MergeValues values : kMergeValues) {
        for (bool largest : {false, true}) {
            for (bool idsAscend : {false, true}) {
                for (double missing : {0.0, 1.0}) {
                    c.values = values;
                    c.largest = largest;
                    c.idsAscend = idsAscend;
                    c.missing = missing;
                    check(c);
                }
            }
        }
    }
}

} // namespace faiss_bits::test
