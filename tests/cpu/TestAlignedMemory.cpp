/// Blocks of AlignedBuffer: aligned, each whole and its owner's alone, on
/// whatever thread they come and go.

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/AlignedMemory.h"
#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::test {
namespace {

struct Block {
    uint8_t* at;
    size_t bytes;
    uint8_t mark;
};

Block take(size_t bytes, uint8_t mark) {
    auto* at = static_cast<uint8_t*>(cpu::takeAligned(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % cpu::kAlignedMemory, 0u);
    std::memset(at, mark, bytes);
    return {at, bytes, mark};
}

void give(const Block& block) {
    for (size_t i = 0; i < block.bytes; ++i) {
        ASSERT_EQ(block.at[i], block.mark) << "of " << block.bytes;
    }
    cpu::giveAligned(block.at, block.bytes);
}

/// Sizes at and around what is kept, more of each than is kept.
std::vector<Block> takeMany() {
    std::vector<Block> blocks;
    for (int times = 0; times < 40; ++times) {
        for (const size_t bytes :
             {0, 1, 127, 128, 129, 255, 256, 4096, 16383, 16384, 16385}) {
            blocks.push_back(take(bytes, uint8_t(blocks.size() * 37 + 1)));
        }
    }
    return blocks;
}

TEST(AlignedMemory, BlocksAreTheirOwners) {
    for (int times = 0; times < 3; ++times) {
        for (const Block& block : takeMany()) {
            give(block);
        }
    }
    cpu::giveAligned(nullptr, 0);
    cpu::giveAligned(nullptr, 4096);
}

#if !defined(__SANITIZE_ADDRESS__)
/// A block goes to the thread's next one of its size, and not to one of
/// another size.
TEST(AlignedMemory, ThreadsTakeWhatTheyGave) {
    std::thread([] { // which has none yet
        void* small = cpu::takeAligned(200);
        void* large = cpu::takeAligned(5000);
        cpu::giveAligned(small, 200);
        cpu::giveAligned(large, 5000);
        void* nextLarge = cpu::takeAligned(8192);
        void* nextSmall = cpu::takeAligned(129);
        EXPECT_EQ(nextLarge, large);
        EXPECT_EQ(nextSmall, small);
        cpu::giveAligned(nextLarge, 8192);
        cpu::giveAligned(nextSmall, 129);
    })
            .join();
}
#endif

/// Given back by other threads than they were taken by, which end.
TEST(AlignedMemory, ThreadsGiveWhatOthersTook) {
    for (int times = 0; times < 8; ++times) {
        std::vector<Block> mine = takeMany(), theirs;
        std::thread([&] {
            for (const Block& block : mine) {
                give(block);
            }
            theirs = takeMany();
        }).join();
        for (const Block& block : theirs) {
            give(block);
        }
    }
}

/// A buffer of the thread that was made before blocks are kept goes after them.
TEST(AlignedMemory, BuffersOutliveWhatIsKept) {
    std::thread([] {
        thread_local cpu::AlignedBuffer<float> early;
        early.allocate(10);
        cpu::AlignedBuffer<float> late(20);
        late = cpu::AlignedBuffer<float>(3000);
        cpu::AlignedBuffer<float> moved(std::move(late));
        EXPECT_EQ(late.get(), nullptr);
        ASSERT_NE(moved.get(), nullptr);
    }).join();
}

} // namespace
} // namespace faiss_bits::test
