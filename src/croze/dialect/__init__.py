"""The two tool protocols, xml and native, behind one interface."""
