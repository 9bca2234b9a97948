/// The merge of sorted lists against a sort of all of them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/many/MergeLists.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

enum class Values {
    Random,
    Few,       ///< mostly ties
    Equal,     ///< all the same
    Infinite,  ///< many infinities, and FLT_MAX itself
    Separated, ///< list after list: the first has all of the best
    Backwards, ///< the last has
    Zeros,     ///< -0 and +0
};

constexpr Values kValues[] = {
        Values::Random,
        Values::Few,
        Values::Equal,
        Values::Infinite,
        Values::Separated,
        Values::Backwards,
        Values::Zeros};

struct MergeCase {
    std::vector<int64_t> widths;
    int64_t rows = 3;
    int64_t k = 10;
    bool largest = false;
    bool idsAscend = true;
    Values values = Values::Random;
    /// Part of the places that are empty in the lists' ends.
    double missing = 0;
};

std::ostream& operator<<(std::ostream& out, const MergeCase& c) {
    out << "widths";
    for (int64_t width : c.widths) {
        out << ' ' << width;
    }
    return out << " rows=" << c.rows << " k=" << c.k << " largest=" << c.largest
               << " idsAscend=" << c.idsAscend << " values=" << int(c.values)
               << " missing=" << c.missing;
}

struct Found {
    float distance = 0;
    int64_t id = 0;
    bool isLastOfCut = false;
};

float valueOf(const MergeCase& c, size_t list, std::mt19937& random) {
    const float unit = float(random() % 1000003) / 1000003.f;
    const float infinity = std::numeric_limits<float>::infinity();
    switch (c.values) {
        case Values::Random:
            return unit - 0.5f;
        case Values::Few:
            return float(random() % 5) - 2;
        case Values::Equal:
            return 1.5f;
        case Values::Infinite: {
            const float some[] = {
                    infinity,
                    -infinity,
                    std::numeric_limits<float>::max(),
                    -std::numeric_limits<float>::max(),
                    unit};
            return some[random() % 5];
        }
        case Values::Separated:
            return float(list) + unit;
        case Values::Backwards:
            return float(c.widths.size() - list) + unit;
        case Values::Zeros:
            return random() % 2 ? 0.f : -0.f;
    }
    return 0;
}

/// What comes first, by its meaning: in float64, equal ones by the lower id.
bool isBefore(const Found& a, const Found& b, bool largest) {
    const double x = a.distance;
    const double y = b.distance;
    if (x != y) {
        return largest ? x > y : x < y;
    }
    return a.id < b.id;
}

/// A limit of a row, whose results are in order: before all, of the k-th and
/// those beside it, none.
float limitOf(const MergeCase& c, const std::vector<Found>& all, int64_t row) {
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
bool isIncomplete(
        const MergeCase& c,
        const std::vector<Found>& all,
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

void checkMerge(const MergeCase& c, bool areLimited) {
    SCOPED_TRACE(::testing::Message() << c << " limits " << areLimited);
    std::mt19937 random(
            unsigned(c.k * 31 + c.rows + c.widths.size() * 7 + int(c.values)));
    const size_t numLists = c.widths.size();
    std::vector<std::vector<Found>> rows(c.rows); // all that there is
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
            std::vector<Found> found;
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
            const Found want = j < int64_t(all.size())
                    ? all[j]
                    : Found{c.largest ? -most : most, -1, false};
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

void checkMerge(const MergeCase& c) {
    checkMerge(c, false);
    checkMerge(c, true);
}

/// Every kind of values and order of one shape.
void checkKinds(MergeCase c) {
    for (Values values : kValues) {
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

class MergeLists : public GpuTest {};

TEST_F(MergeLists, SmallListsOfOneWidth) {
    for (int lists : {1, 2, 3, 8}) {
        for (int64_t k : {1, 2, 31, 33}) {
            MergeCase c;
            c.widths.assign(lists, k);
            c.k = k;
            checkKinds(c);
        }
    }
}

TEST_F(MergeLists, SmallListsOfOtherWidths) {
    for (int64_t k : {1, 10, 40}) {
        for (const auto& widths : std::vector<std::vector<int64_t>>{
                     {},
                     {0, 0},
                     {0, k, 0},
                     {1, k, 1},
                     {k, 3, 2, k, 1},
                     {2 * k, k},
                     {1, 1, 1, 1, 1, 1, 1}}) {
            MergeCase c;
            c.widths = widths;
            c.k = k;
            checkKinds(c);
        }
    }
}

/// Both sides of: a warp a row, keys in shared memory (1024 and 8192), blocks
/// of a row (2048).
TEST_F(MergeLists, EdgesOfTheKernels) {
    for (int64_t k : {255, 256, 257, 1023, 2048, 2049, 5000}) {
        for (int lists : {2, 5}) {
            MergeCase c;
            c.widths.assign(lists, k);
            c.k = k;
            checkKinds(c);
        }
    }
    MergeCase c;
    c.k = 128;
    c.widths.assign(8, 128); // 1024 keys if all are candidates
    checkKinds(c);
    c.widths.push_back(1);
    checkKinds(c);
}

TEST_F(MergeLists, MostLists) {
    MergeCase c;
    c.widths.assign(kMaxMergeLists, 9);
    c.k = 50;
    checkKinds(c);
}

TEST_F(MergeLists, ManyRows) {
    MergeCase c;
    c.rows = 3001;
    c.k = 20;
    c.widths = {20, 20, 7};
    c.values = Values::Few;
    checkMerge(c);
    c.k = 300;
    c.widths = {300, 300, 300};
    checkMerge(c);
}

TEST_F(MergeLists, LargeK) {
    MergeCase c;
    c.rows = 1;
    c.k = 100000;
    c.widths = {100000, 100000, 40000};
    for (Values values : {Values::Random, Values::Few, Values::Separated}) {
        c.values = values;
        checkMerge(c);
        c.idsAscend = !c.idsAscend;
    }
}

/// An id that two lists have is a result of each, in the order of the lists.
TEST_F(MergeLists, SmallRepeatedIds) {
    const DeviceBuffer<float> distances(std::vector<float>{1, 1, 2});
    const DeviceBuffer<int64_t> ids(std::vector<int64_t>{4, 4, 5});
    DeviceBuffer<float> outDistances(7);
    DeviceBuffer<int64_t> outIds(7);
    MergeProblem problem;
    problem.rows = 1;
    problem.k = 7;
    problem.lists = {
            {distances.data(), ids.data(), 3, 0, false},
            {distances.data(), ids.data(), 3, 0, false}};
    problem.outDistances = outDistances.data();
    problem.outIds = outIds.data();
    runMergeLists(problem, nullptr);
    EXPECT_EQ(outIds.download(), (std::vector<int64_t>{4, 4, 4, 4, 5, 5, -1}));
}

TEST_F(MergeLists, SmallCaptured) {
    const DeviceBuffer<float> distances(std::vector<float>{1, 2});
    const DeviceBuffer<int64_t> ids(std::vector<int64_t>{0, 1});
    DeviceBuffer<float> outDistances(2);
    DeviceBuffer<int64_t> outIds(2);
    MergeProblem problem;
    problem.rows = 1;
    problem.k = 2;
    problem.idsAscend = true;
    problem.lists = {
            {distances.data(), ids.data(), 2, 0, false},
            {distances.data(), ids.data(), 2, 10, false}};
    problem.outDistances = outDistances.data();
    problem.outIds = outIds.data();
    const TestStream stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    BITS_CUDA_CHECK(
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    runMergeLists(problem, stream);
    BITS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    BITS_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    BITS_CUDA_CHECK(cudaGraphLaunch(executable, stream));
    EXPECT_EQ(outIds.download(), (std::vector<int64_t>{0, 10}));
    BITS_CUDA_CHECK(cudaGraphExecDestroy(executable));
    BITS_CUDA_CHECK(cudaGraphDestroy(graph));
}

MergeProblem goodProblem() {
    MergeProblem problem;
    problem.rows = 1;
    problem.k = 1;
    problem.outDistances = reinterpret_cast<float*>(256);
    problem.outIds = reinterpret_cast<int64_t*>(256);
    problem.lists = {{problem.outDistances, problem.outIds, 1, 0, false}};
    return problem;
}

template <class Change>
void expectRefused(const std::string& name, const Change& change) {
    MergeProblem problem = goodProblem();
    change(problem);
    EXPECT_TRUE(throwsNaming([&] { runMergeLists(problem, nullptr); }, name));
}

TEST(MergeListsArguments, AreChecked) {
    expectRefused("rows", [](auto& p) { p.rows = -1; });
    expectRefused("rows", [](auto& p) { p.rows = int64_t(1) << 31; });
    expectRefused("k", [](auto& p) { p.k = 0; });
    expectRefused("k", [](auto& p) { p.k = int64_t(1) << 31; });
    expectRefused("outDistances", [](auto& p) { p.outDistances = nullptr; });
    expectRefused("outIds", [](auto& p) { p.outIds = nullptr; });
    expectRefused("lists[0].width", [](auto& p) { p.lists[0].width = -1; });
    expectRefused("lists[0].distances", [](auto& p) {
        p.lists[0].distances = nullptr;
    });
    expectRefused("lists[0].ids", [](auto& p) { p.lists[0].ids = nullptr; });
    expectRefused("lists.size()", [](auto& p) {
        p.lists.resize(kMaxMergeLists + 1, p.lists[0]);
    });
    expectRefused("incomplete", [](auto& p) { p.lists[0].isCut = true; });
    expectRefused("incomplete", [](auto& p) { p.limits = p.outDistances; });
    expectRefused("widths", [](auto& p) {
        p.lists.resize(3, p.lists[0]);
        for (auto& list : p.lists) {
            list.width = (int64_t(1) << 31) - 1;
        }
    });
}

} // namespace
} // namespace faiss_bits::test
