/// Bits and lists of filters, made on the device.

#include <algorithm>

#include "kernels/knn/filter/FilterBits.h"
#include "kernels/knn/filter/FilterColumns.h"
#include "tests/knn/FilterHarness.h"

namespace faiss_bits::test {
namespace {

class FilterBits : public GpuTest {
   protected:
    /// Bits behind the last vector are zero.
    static std::vector<uint32_t> zeroTail(const std::vector<bool>& members) {
        return filterBits(members, false);
    }

    static std::vector<int64_t> sizes() {
        return {1, 31, 32, 33, 64, 1000, 8191, 8192, 8193, 100003};
    }
};

TEST_F(FilterBits, SmallRanges) {
    for (int64_t n : {0, 1, 31, 32, 33, 100}) {
        for (int64_t first = -2; first <= n + 2; first += 7) {
            for (int64_t end = -2; end <= n + 40; end += 5) {
                DeviceBuffer<uint32_t> bits(filterWords(n));
                runRangeBits(bits.data(), n, first, end, nullptr);
                std::vector<bool> members(n);
                for (int64_t i = 0; i < n; ++i) {
                    members[i] = first <= i && i < end;
                }
                ASSERT_EQ(bits.download(), zeroTail(members))
                        << n << " " << first << " " << end;
            }
        }
    }
}

TEST_F(FilterBits, SmallIds) {
    for (int64_t n : {1, 33, 1000}) {
        std::mt19937 random{5};
        std::vector<int64_t> ids = {-1, n, INT64_MIN, INT64_MAX, 0, n - 1, 0};
        for (int i = 0; i < 300; ++i) {
            ids.push_back(int64_t(random() % (2 * n)) - n / 2);
        }
        std::vector<bool> members(n);
        for (int64_t id : ids) {
            if (0 <= id && id < n) {
                members[id] = true;
            }
        }
        const DeviceBuffer<int64_t> deviceIds(ids);
        DeviceBuffer<uint32_t> bits(filterWords(n), 0);
        runAddIdBits(bits.data(), n, deviceIds.data(), ids.size(), nullptr);
        EXPECT_EQ(bits.download(), zeroTail(members)) << n;
        runAddIdBits(bits.data(), n, deviceIds.data(), 0, nullptr);
        EXPECT_EQ(bits.download(), zeroTail(members)) << n;
    }
}

TEST_F(FilterBits, SmallOperations) {
    for (int64_t n : {1, 32, 33, 1000}) {
        const auto a = makeAllowed(Allowed::Half, n, 1);
        const auto b = makeAllowed(Allowed::OneInFive, n, 2);
        for (auto operation :
             {BitOperation::And, BitOperation::Or, BitOperation::Xor}) {
            std::vector<bool> members(n);
            for (int64_t i = 0; i < n; ++i) {
                members[i] = operation == BitOperation::And ? a[i] && b[i]
                        : operation == BitOperation::Or     ? a[i] || b[i]
                                                            : a[i] != b[i];
            }
            DeviceBuffer<uint32_t> bits(zeroTail(a));
            const DeviceBuffer<uint32_t> other(zeroTail(b));
            runCombineBits(operation, bits.data(), other.data(), n, nullptr);
            EXPECT_EQ(bits.download(), zeroTail(members)) << n;
        }
        std::vector<bool> members = a;
        members.flip();
        DeviceBuffer<uint32_t> bits(zeroTail(a));
        runInvertBits(bits.data(), n, nullptr);
        EXPECT_EQ(bits.download(), zeroTail(members)) << n;
        DeviceBuffer<uint32_t> dirty(filterBits(a, true));
        runClearTail(dirty.data(), n, nullptr);
        EXPECT_EQ(dirty.download(), zeroTail(a)) << n;
    }
}

void expectIds(Allowed allowed, int64_t n, int64_t more) {
    const auto members = makeAllowed(allowed, n);
    std::vector<int32_t> ids = idsOf(members);
    const int64_t capacity = std::max<int64_t>(ids.size() + more, 0);
    ids.resize(capacity, -1);
    const DeviceBuffer<uint32_t> bits(filterBits(members, true));
    DeviceBuffer<int32_t> list(capacity, 0x11);
    DeviceBuffer<uint8_t> scratch(idsOfBitsWorkspaceBytes(n));
    runIdsOfBits(
            bits.data(),
            n,
            list.data(),
            capacity,
            {scratch.data(), scratch.size()},
            nullptr);
    EXPECT_EQ(list.download(), ids)
            << nameOf(allowed) << " n=" << n << " more=" << more;
}

TEST_F(FilterBits, SmallIdsOfBits) {
    for (int64_t n : {1, 33, 8193}) {
        for (Allowed allowed : {Allowed::None, Allowed::Half, Allowed::All}) {
            expectIds(allowed, n, 2);
        }
    }
}

TEST_F(FilterBits, IdsOfBits) {
    for (int64_t n : sizes()) {
        for (Allowed allowed : kEveryAllowed) {
            for (int64_t more : {0, 5, -3}) {
                expectIds(allowed, n, more);
            }
        }
    }
    // More chunks than the scan takes at a time.
    const int64_t many = (int64_t(1) << 25) + 77;
    for (Allowed allowed : {Allowed::Last, Allowed::OneInAHundred}) {
        expectIds(allowed, many, 1);
    }
}

/// NaN over the distances of what is not allowed, and over nothing else.
TEST_F(FilterBits, SmallMaskedValues) {
    for (int64_t n : {1, 40, 1000}) {
        for (int64_t first : {0, 8}) {
            for (int64_t rows : {1, 70}) {
                const int64_t count = std::max<int64_t>(n - first, 0);
                const int64_t stride = count + 3;
                const auto members = makeAllowed(Allowed::Half, n);
                const DeviceBuffer<uint32_t> bits(filterBits(members, true));
                const std::vector<float> ones(rows * stride, 1.f);
                const DeviceBuffer<float> values(ones);
                runMaskValues(
                        bits.data(),
                        first,
                        count,
                        rows,
                        values.data(),
                        stride,
                        nullptr);
                const std::vector<float> got = values.download();
                for (int64_t i = 0; i < rows * stride; ++i) {
                    const int64_t column = i % stride;
                    const bool kept =
                            column >= count || members[first + column];
                    ASSERT_EQ(std::isnan(got[i]), !kept)
                            << n << " " << first << " " << rows << " " << i;
                }
            }
        }
    }
}

TEST_F(FilterBits, SmallWideIds) {
    const std::vector<int32_t> ids = {0, 5, INT32_MAX, -1, -1};
    const DeviceBuffer<int32_t> narrow(ids);
    const DeviceBuffer<int64_t> wide(ids.size());
    runWidenIds(narrow.data(), ids.size(), wide.data(), nullptr);
    EXPECT_EQ(wide.download(), std::vector<int64_t>(ids.begin(), ids.end()));
}

} // namespace
} // namespace faiss_bits::test
