// Stored (uncompressed) zip archives: local headers and contents, then the central directory.
#include "tensor/zip.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace prong {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;

// Eight table look-ups for eight bytes, so that large tensors do not wait for their checksum.
uint32_t checksum(std::string_view data) {
  static const auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[0][i] = c;
    }
    for (size_t i = 0; i < 256; ++i)
      for (size_t k = 1; k < 8; ++k) t[k][i] = t[0][t[k - 1][i] & 0xff] ^ (t[k - 1][i] >> 8);
    return t;
  }();
  uint32_t crc = ~0u;
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    uint32_t low, high;
    std::memcpy(&low, data.data() + i, 4);
    std::memcpy(&high, data.data() + i + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
          tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
          tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; i < data.size(); ++i)
    crc = tables[0][(crc ^ static_cast<uint8_t>(data[i])) & 0xff] ^ (crc >> 8);
  return ~crc;
}

void put(std::string& out, uint64_t value, int bytes) {
  for (int k = 0; k < bytes; ++k, value >>= 8) out += static_cast<char>(value & 0xff);
}
uint32_t get(std::string_view bytes, size_t at, size_t count) {
  PRONG_CHECK(at + count <= bytes.size(), kRuntime, "zip archive: it ends too early");
  uint32_t value = 0;
  for (size_t k = count; k-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + k]);
  return value;
}

// What both kinds of header say of a file, from "version needed" on.
void put_facts(std::string& out, const std::string& name, const std::string& content,
               uint32_t crc) {
  put(out, 20, 2);     // version
  put(out, 0x800, 2);  // names are UTF-8
  put(out, 0, 2);      // stored
  put(out, 0, 2);      // time
  put(out, 0x21, 2);   // 1980-01-01: the same program gives the same bytes
  put(out, crc, 4);
  put(out, content.size(), 4);
  put(out, content.size(), 4);
  put(out, name.size(), 2);
  put(out, 0, 2);  // extra field
}

}  // namespace

std::string write_zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out, directory;
  for (const auto& [name, content] : files) {
    const size_t offset = out.size();
    PRONG_CHECK(offset + content.size() < 0xffffffffu, kValue, "zip archive: more than 4 GiB");
    const uint32_t crc = checksum(content);
    put(out, kLocal, 4);
    put_facts(out, name, content, crc);
    out += name;
    out += content;
    put(directory, kCentral, 4);
    put(directory, 20, 2);  // made by
    put_facts(directory, name, content, crc);
    put(directory, 0, 2 + 2 + 2 + 4);  // comment, disk, attributes
    put(directory, offset, 4);
    directory += name;
  }
  const size_t start = out.size();
  out += directory;
  put(out, kEnd, 4);
  put(out, 0, 2 + 2);  // disks
  put(out, files.size(), 2);
  put(out, files.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);  // comment
  return out;
}

std::vector<std::pair<std::string, std::string_view>> read_zip(std::string_view bytes) {
  size_t end = bytes.size() < kEndBytes ? std::string_view::npos : bytes.size() - kEndBytes;
  while (end != std::string_view::npos && get(bytes, end, 4) != kEnd)
    end = end == 0 ? std::string_view::npos : end - 1;
  PRONG_CHECK(end != std::string_view::npos, kRuntime, "zip archive: this is no zip archive");
  std::vector<std::pair<std::string, std::string_view>> files;
  size_t at = get(bytes, end + 16, 4);
  for (uint32_t left = get(bytes, end + 10, 2); left > 0; --left) {
    PRONG_CHECK(get(bytes, at, 4) == kCentral, kRuntime, "zip archive: its directory is damaged");
    const uint32_t method = get(bytes, at + 10, 2), crc = get(bytes, at + 16, 4),
                   size = get(bytes, at + 24, 4);
    const uint32_t name_bytes = get(bytes, at + 28, 2), offset = get(bytes, at + 42, 4);
    PRONG_CHECK(at + kCentralBytes + name_bytes <= bytes.size(), kRuntime,
                "zip archive: its directory is damaged");
    std::string name(bytes.substr(at + kCentralBytes, name_bytes));
    PRONG_CHECK(method == 0, kRuntime, "zip archive: '", name,
                "' is compressed, which Prong does not write");
    const size_t content =
        size_t{offset} + kLocalBytes + get(bytes, offset + 26, 2) + get(bytes, offset + 28, 2);
    PRONG_CHECK(content + size <= bytes.size(), kRuntime, "zip archive: '", name, "' is cut off");
    PRONG_CHECK(checksum(bytes.substr(content, size)) == crc, kRuntime, "zip archive: '", name,
                "' is damaged");
    files.emplace_back(std::move(name), bytes.substr(content, size));
    at += kCentralBytes + name_bytes + get(bytes, at + 30, 2) + get(bytes, at + 32, 2);
  }
  return files;
}

}  // namespace prong
