/// The merge of sorted lists against a sort of all of them.

#include "tests/common/CapturedGraph.h"
#include "tests/common/ExpectError.h"
#include "tests/many/MergeHarness.h"

namespace faiss_bits::test {
namespace {

class MergeLists : public MergeTest {};

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
    c.values = MergeValues::Few;
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
    for (MergeValues values :
         {MergeValues::Random, MergeValues::Few, MergeValues::Separated}) {
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
    CapturedGraph graph(
            stream,
            [&] { runMergeLists(problem, stream); },
            cudaStreamCaptureModeGlobal);
    graph.launch();
    EXPECT_EQ(outIds.download(), (std::vector<int64_t>{0, 10}));
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
