/// The order in which lanes look up a table's entries (IvfPartOrder.h), without
/// a device: every lane comes to each code of its vector, and finds the entry
/// of that; and no two lanes are in one bank.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/ivf/IvfPartOrder.h"

namespace faiss_bits::test {
namespace {

constexpr int kLanes = 32;
constexpr int kBankBytes = 4 * kIvfBanks;

/// As prmt: a byte for each nibble of the selector, or with its highest bit
/// the sign of that.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t nibble = selector >> 4 * i & 15;
        const uint64_t both = uint64_t(b) << 32 | a;
        uint32_t byte = uint32_t(both >> 8 * (nibble & 7)) & 255;
        if (nibble & 8) {
            byte = byte & 128 ? 255 : 0;
        }
        result |= byte << 8 * i;
    }
    return result;
}

/// Codes of 32 vectors as a ring has them: pieces of all lanes side by side.
struct Codes {
    std::vector<uint8_t> bytes;

    Codes() : bytes(kIvfCodePieceBytes + size_t(kLanes) * kIvfCodeBytes) {}
    uint8_t& of(int lane, int slot) {
        return bytes
                [slot / kIvfCodeBytes * kIvfCodePieceBytes +
                 lane * kIvfCodeBytes + slot % kIvfCodeBytes];
    }
    uint32_t word(uint32_t at) const {
        return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 |
                uint32_t(bytes[at + 3]) << 24;
    }
};

template <int kPartDims>
void expectOrder() {
    using Order = IvfPartOrder<kPartDims>;
    SCOPED_TRACE(testing::Message() << kPartDims << " components");
    static_assert(Order::kSlots * Order::kCopies == kIvfBanks);
    static_assert(Order::kSlots * Order::kRounds * kPartDims == kMostHeldDims);
    Codes codes;
    for (int lane = 0; lane < kLanes; ++lane) {
        for (int slot = 0; slot < Order::kSlots; ++slot) {
            codes.of(lane, slot) = uint8_t(lane * 37 + slot * 101 + 5);
        }
    }
    std::vector<std::set<int>> slots(kLanes);
    for (int w = 0; w < Order::kWords; ++w) {
        std::set<uint32_t> banksOfCodes;
        uint32_t turned[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
            const int word = Order::firstWord(lane) ^ w;
            ASSERT_LT(word, Order::kWords);
            const uint32_t at =
                    uint32_t(word / Order::kWordsOfPiece * kIvfCodePieceBytes) +
                    lane * kIvfCodeBytes + word % Order::kWordsOfPiece * 4;
            banksOfCodes.insert(at % kBankBytes);
            turned[lane] = permuted(codes.word(at), 0, Order::turnedOf(lane));
        }
        // Of eight parts four lanes in two words: two turns.
        EXPECT_EQ(
                banksOfCodes.size(),
                size_t(std::min(kLanes, kLanes / 4 * Order::kWords)));
        for (int i = 0; i < 4; ++i) {
            std::set<uint32_t> banks;
            for (int lane = 0; lane < kLanes; ++lane) {
                const int slot = 4 * (Order::firstWord(lane) ^ w) +
                        (Order::firstByte(lane) ^ i);
                slots[lane].insert(slot);
                const uint32_t places = Order::placesOf(lane, i / 2, w);
                EXPECT_EQ(
                        places, Order::placesOf(lane, i / 2, 0) ^ 0x1010u * w);
                const uint32_t offset =
                        permuted(turned[lane], places, Order::offsetBy(i));
                const uint32_t entry = codes.of(lane, slot) * 256u +
                        Order::placeOf(slot, Order::copyOf(lane));
                EXPECT_EQ(offset, entry) << lane << " " << slot;
                // Those of the other list lie beside them, another round's
                // behind all rows.
                EXPECT_EQ(
                        permuted(
                                turned[lane],
                                places | Order::tableOf(1, 1),
                                Order::offsetBy(i)),
                        entry + kBankBytes + 256 * kIvfCodebookRows);
                banks.insert(offset % kBankBytes);
            }
            EXPECT_EQ(banks.size(), size_t(kLanes));
        }
    }
    for (const std::set<int>& ofLane : slots) {
        EXPECT_EQ(ofLane.size(), size_t(Order::kSlots));
    }
}

TEST(IvfPartOrder, EveryLaneFindsItsEntriesInABankOfItsOwn) {
    expectOrder<2>();
    expectOrder<4>();
    expectOrder<8>();
    expectOrder<16>();
}

/// What a part's entries lie at does not reach into what another list has.
TEST(IvfPartOrder, ARowHasEntriesOfTwoLists) {
    const auto mostOf = [](auto order) {
        using Order = decltype(order);
        return Order::placeOf(Order::kSlots - 1, Order::kCopies - 1) + 4;
    };
    EXPECT_EQ(mostOf(IvfPartOrder<2>()), uint32_t(kBankBytes));
    EXPECT_EQ(mostOf(IvfPartOrder<4>()), uint32_t(kBankBytes));
    EXPECT_EQ(mostOf(IvfPartOrder<8>()), uint32_t(kBankBytes));
    EXPECT_EQ(mostOf(IvfPartOrder<16>()), uint32_t(kBankBytes));
    EXPECT_EQ(2 * kBankBytes, 256);
}

} // namespace
} // namespace faiss_bits::test
