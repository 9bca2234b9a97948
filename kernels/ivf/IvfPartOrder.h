#pragma once

#include "kernels/ivf/IvfBoundedScans.h"

/// In which order the lanes of a warp look up the entries of a list's table,
/// and where these lie (IvfPartBanks.cuh). A row has the entries of a code;
/// those of a part are all in one bank of shared memory. A lane begins with a
/// part of its own and goes through them all by changing bits of its number, so
/// that no two lanes look up parts of one bank at a time.
namespace faiss_bits {

/// partDims: components of a part, 2, 4, 8 or 16.
template <int kPartDims>
struct IvfPartOrder {
    static constexpr int kParts = kMostHeldDims / kPartDims;
    /// Parts that lie side by side, one a bank; of fewer than there are banks
    /// an entry has copies.
    static constexpr int kSlots = kParts < kIvfBanks ? kParts : kIvfBanks;
    static constexpr int kCopies = kIvfBanks / kSlots;
    static constexpr int kRounds = kParts / kSlots;
    /// The codes of a round, in words, and in pieces that come separately
    /// (IvfCodeRing.cuh).
    static constexpr int kWords = kSlots / 4;
    static constexpr int kWordsOfPiece =
            kWords < kIvfCodeBytes / 4 ? kWords : kIvfCodeBytes / 4;
    static constexpr int kPieces = kWords / kWordsOfPiece;

    /// Bytes from the begin of a row on.
    BITS_HOST_DEVICE static constexpr uint32_t placeOf(int slot, int copy) {
        return uint32_t(copy * kSlots + slot) * 4;
    }

    /// The word of codes and the byte of it that a lane begins with, and the
    /// copies of entries that it looks up. Lanes that have the same bank of
    /// their codes begin with different words.
    BITS_HOST_DEVICE static constexpr int firstByte(int lane) {
        return lane % 4;
    }
    BITS_HOST_DEVICE static constexpr int firstWord(int lane) {
        return (lane / 8 + (kPieces > 1 ? lane / 4 % 2 * 4 : 0)) % kWords;
    }
    BITS_HOST_DEVICE static constexpr int copyOf(int lane) {
        return (lane / 4 % 2 + lane / 16 * 2) % kCopies;
    }

    /// The places of four parts, a byte each, of word firstWord() ^ w: byte i
    /// is that of code firstByte() ^ i.
    BITS_HOST_DEVICE static constexpr uint32_t placesOf(int lane, int w) {
        return ((0x0c080400u ^ 0x04040404u * uint32_t(firstByte(lane))) +
                0x01010101u * placeOf(4 * firstWord(lane), copyOf(lane))) ^
                (0x10101010u * uint32_t(w));
    }
    /// A selector of __byte_perm() that brings codes into that order.
    BITS_HOST_DEVICE static constexpr uint32_t turnedOf(int lane) {
        return 0x3210u ^ 0x1111u * uint32_t(firstByte(lane));
    }
    /// A selector of prmt that makes the offset of an entry from code i of four
    /// and their places: a row is 256 bytes, and twice the sign of a place,
    /// which is 0, comes before.
    BITS_HOST_DEVICE static constexpr uint32_t offsetBy(int i) {
        return 0xcc04u + 0x1111u * uint32_t(i);
    }
};

} // namespace faiss_bits
