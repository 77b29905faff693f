// Added tokens: texts cut out of the input before anything else looks at it (added_vocabulary.rs of HF
// tokenizers): leftmost, then longest. Special ones are found like others, so that they shadow what overlaps
// them, but stay text (product.md: special-token text is literal; S25), as `encode_special_tokens` does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for in the normalized text
};

// A part of a text: an added token, or text between them (id < 0).
struct Segment {
  std::size_t begin = 0, end = 0;
  std::int32_t id = -1;
};

class AddedTokens {
 public:
  // Empty contents are ignored; of two tokens with one content the last counts.
  explicit AddedTokens(const std::vector<AddedToken>& tokens);
  // Covers well-formed `text` in order, without empty parts (white space taken along belongs to its token).
  std::vector<Segment> find(std::string_view text) const;

 private:
  struct Node {
    std::map<unsigned char, std::size_t> next;
    std::size_t token = 0;  // index + 1; 0: none ends here
  };
  struct Found {
    std::size_t length = 0;
    const AddedToken* token = nullptr;
  };
  Found longest_at(std::string_view text, std::size_t begin) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
};

}  // namespace quantmap
