/// The same where a kernel of its own scores the lists, or the rows of bits,
/// from a copy of the vectors.

#include "tests/knn/FinishHarness.h"

namespace faiss_bits::test {
namespace {

constexpr SlotPlace kPlaces[] = {
        SlotPlace::Auto,
        SlotPlace::Shared,
        SlotPlace::Memory};

/// Both sides of each width of the copy, and every number of parts.
TEST_F(FinishPassed, SmallSlots) {
    const DeviceTraits device = deviceTraits();
    for (int d : {1, 8, 31, 32, 33, 64, 65, 96, 127, 128}) {
        const int64_t fit =
                int64_t((device.blockSharedBytes - 12 * 1024) / sizeof(float) /
                        slotRowsSize(1, d) / 32 * 32);
        for (SlotPlace place : kPlaces) {
            for (int parts : {1, 2, 3, 4}) {
                FinishCase c;
                c.bySlots = true;
                c.place = place;
                c.byBits = parts % 2;
                c.d = d;
                c.metric = kProducts[(d + parts) % 3];
                c.data = d % 2 ? Hard::Mixed : Hard::Bytes;
                c.n = parts * fit - d % 3;
                if (place == SlotPlace::Shared) {
                    ASSERT_EQ(int(slotParts(c.n, d, device)), parts);
                } else if (parts > 1) {
                    c.n = 700;
                }
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
        EXPECT_EQ(slotParts(4 * fit + 1, d, device), 0u) << d;
    }
}

TEST_F(FinishPassed, SlotsOfHardData) {
    for (Hard data : kHard) {
        for (Metric metric : kProducts) {
            for (SlotPlace place : {SlotPlace::Shared, SlotPlace::Memory}) {
                FinishCase c;
                c.bySlots = true;
                c.byBits = int(data) % 2;
                c.place = place;
                c.metric = metric;
                c.data = data;
                c.k = place == SlotPlace::Shared ? 50 : 100;
                c.n = 800;
                c.d = 90; // two parts
                expectResults(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FinishPassed, SlotsOfTypesAndLayouts) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int i = 0; i < 6; ++i) {
            FinishCase c;
            c.bySlots = true;
            c.byBits = i % 2;
            c.place = kPlaces[i % 3];
            c.type = type;
            c.metric = kProducts[i % 3];
            c.columnMajor = i & 1;
            c.idType = i == 1 ? IdType::Int32 : IdType::Int64;
            c.k = 40;
            c.d = 40;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// A copy for each multiprocessor pays, and warps have several lists each.
TEST_F(FinishPassed, SlotsOfManyRows) {
    for (SlotPlace place : kPlaces) {
        FinishCase c;
        c.bySlots = true;
        c.place = place;
        c.n = 1000;
        c.d = 80;
        for (bool byBits : {false, true}) {
            c.byBits = byBits;
            c.repeats = place == SlotPlace::Auto ? 80 : 8;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Some lists are for blocks, and some rows have more than a queue of bits.
TEST_F(FinishPassed, SmallSlotsOfLongLists) {
    for (Metric metric : kProducts) {
        for (bool byBits : {false, true}) {
            FinishCase c;
            c.bySlots = true;
            c.byBits = byBits;
            c.place = byBits ? SlotPlace::Shared : SlotPlace::Memory;
            c.metric = metric;
            c.capacity = 1100;
            c.n = 1403;
            c.d = 50;
            c.k = 33;
            expectResults(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(FinishPassed, SlotsThatAreNone) {
    const DeviceTraits device = deviceTraits();
    EXPECT_EQ(slotParts(10, 129, device), 0u);
    FinishPassedParams params;
    float row = 0;
    params.slotRows = &row; // never read
    params.passed.search.d = 128;
    params.passed.search.n = 100000;
    params.place = SlotPlace::Shared;
    EXPECT_THROW(launchFinishPassed(Metric::L2, params, device, nullptr), Error)
            << "too many for shared memory";
    params.place = SlotPlace::Memory;
    params.passed.search.d = 129;
    EXPECT_THROW(launchFinishPassed(Metric::L2, params, device, nullptr), Error)
            << "too many dimensions";
    params.passed.search.d = 128;
    const int32_t id = 0;
    params.passed.search.listedIds = &id;
    EXPECT_THROW(launchFinishPassed(Metric::L2, params, device, nullptr), Error)
            << "a list of ids";
    EXPECT_THROW(
            launchScoreSlots(
                    Metric::L1,
                    {},
                    {},
                    &row,
                    SlotPlace::Memory,
                    device,
                    nullptr),
            Error);
}

} // namespace
} // namespace faiss_bits::test
