"""A text to read in a bench: English prose as people drop it on a chat."""

TEXT = """\
The harbour of the old town lies behind two stone moles, and a ship that wants to enter has to turn twice \
before it finds calm water. Fishermen say that the builders knew nothing of the sea; the engineers who \
measured the swell a hundred years later found that the crooked entrance takes nine tenths of its force. \
Nobody knows who was right first. In the archive there are three drawings, none of them signed, and a bill \
for four hundred and twelve barrels of lime.

Every morning at six the pilot walks along the northern mole and reads the gauge. He writes the height of \
the water into a book, together with the wind, the state of the sky and whatever else seems worth a word: a \
seal on the steps, a light that went out, the first swallows. The books go back to 1871. When the \
university asked for them, the harbour master lent them out one at a time, and only after the previous one \
had come home. It took eleven years to copy them, and the copy was finished in the same winter in which the \
roof of the archive gave way under the snow.

What the books show is simple. The mean level has risen by twenty-three centimetres, a little faster in the \
last thirty years than before. The highest waters have risen more than the mean, because the winds of \
November now come more often from the west. There are gaps: two weeks in 1918, when the pilot was ill and \
his daughter wrote the numbers on the back of letters; most of a summer in 1944; and a single day in 1987 \
that says only "no gauge". The gauge had been taken by the storm. It was found in a field, eighty metres \
from the water, and hangs in the town hall today.

The council has discussed three plans. The first would raise both moles by one metre and close the gap with \
a gate, which is dear and would have to be paid for by a fee on every berth. The second would give up the \
lower quay, move the market hall to the square and let the water come twice a year. The third, which nobody \
proposed but which most people follow, is to wait. A gate needs power at the moment when the lines are most \
likely to fail, so the engineers want two generators and a crew that practises each month. The merchants \
answer that they have carried their goods upstairs since their grandfathers' days and can do it again. At \
the last meeting the pilot was asked for his opinion. He opened the book of the year, read out the entry of \
that morning, and sat down.
"""
