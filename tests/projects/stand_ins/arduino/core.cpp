/* What a core does around a sketch: setup once, then loop, here once, too. */
#include "Arduino.h"
Console Serial;
int main() {
    setup();
    loop();
    return 0;
}
