/// Numbers in a part to numbers in the whole.

#include <gtest/gtest.h>

#include "kernels/many/MapIds.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class MapIds : public GpuTest {};

TEST_F(MapIds, SmallSegments) {
    for (int numSegments : {1, 2, 3, 100}) {
        std::vector<IdSegment> segments;
        std::vector<int64_t> whole; // of every number in the part
        int64_t next = 5;
        for (int i = 0; i < numSegments; ++i) {
            segments.push_back({int64_t(whole.size()), next});
            for (int j = 0; j <= i % 4; ++j) {
                whole.push_back(next++);
            }
            next += i % 3 == 0 ? int64_t(1) << 33 : 1;
        }
        std::vector<int64_t> ids;
        std::vector<int64_t> want;
        for (size_t i = 0; i < 3000; ++i) {
            const bool none = i % 7 == 3;
            const size_t id = i * 37 % whole.size();
            ids.push_back(none ? -1 : int64_t(id));
            want.push_back(none ? -1 : whole[id]);
        }
        const DeviceBuffer<IdSegment> table(segments);
        const DeviceBuffer<int64_t> mapped(ids);
        runMapIds(
                table.data(),
                numSegments,
                mapped.data(),
                int64_t(ids.size()),
                nullptr);
        EXPECT_EQ(mapped.download(), want) << numSegments;
    }
}

TEST(MapIdsArguments, AreChecked) {
    auto* table = reinterpret_cast<IdSegment*>(256);
    auto* ids = reinterpret_cast<int64_t*>(256);
    EXPECT_TRUE(throwsNaming(
            [&] { runMapIds(nullptr, 1, ids, 1, nullptr); }, "segments"));
    EXPECT_TRUE(throwsNaming(
            [&] { runMapIds(table, 0, ids, 1, nullptr); }, "numSegments"));
    EXPECT_TRUE(throwsNaming(
            [&] { runMapIds(table, 1, nullptr, 1, nullptr); }, "ids"));
    EXPECT_TRUE(throwsNaming(
            [&] { runMapIds(table, 1, ids, -1, nullptr); }, "count"));
    runMapIds(nullptr, 0, nullptr, 0, nullptr); // nothing to do
}

} // namespace
} // namespace faiss_bits::test
