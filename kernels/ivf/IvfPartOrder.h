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

    /// The places of two of the four parts of word firstWord() ^ w, those of
    /// codes firstByte() ^ 2 pair and firstByte() ^ (2 pair + 1), a byte each,
    /// and two zeros.
    BITS_HOST_DEVICE static constexpr uint32_t placesOf(
            int lane,
            int pair,
            int w) {
        const int code = firstByte(lane) ^ (2 * pair);
        const int slot = 4 * (firstWord(lane) ^ w);
        return placeOf(slot + code, copyOf(lane)) |
                placeOf(slot + (code ^ 1), copyOf(lane)) << 8;
    }
    /// What such places have beside, of one of the two lists of a row and of a
    /// round.
    BITS_HOST_DEVICE static constexpr uint32_t tableOf(int list, int round) {
        return 0x8080u * uint32_t(list) | uint32_t(round) << 16;
    }
    /// A selector of __byte_perm() that brings codes into that order.
    BITS_HOST_DEVICE static constexpr uint32_t turnedOf(int lane) {
        return 0x3210u ^ 0x1111u * uint32_t(firstByte(lane));
    }
    /// Likewise, that makes the offset of an entry from code i of four and the
    /// places of its pair: a row is 256 bytes, and a round 256 rows.
    BITS_HOST_DEVICE static constexpr uint32_t offsetBy(int i) {
        return 0x7604u + uint32_t(i << 4 | i % 2);
    }
};

} // namespace faiss_bits
