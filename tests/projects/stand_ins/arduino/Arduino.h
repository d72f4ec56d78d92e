/* The console of a board, as sketches use it, on a computer. */
#include <stdio.h>
struct Console {
    void begin(unsigned long) {}
    operator bool() const { return true; }
    void print(const char *text) { fputs(text, stdout); }
};
extern Console Serial;
void setup();
void loop();
