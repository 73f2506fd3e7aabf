/* Variables of D have no address. */
BEGIN { trace(&timestamp); }
